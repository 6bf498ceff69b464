# ONCED_ROCKSDB_ASSERTS: 1 where RocksDB was built with its assertions, 0 where not. No header of it tells, but only such a
# build has the points at which its own tests stop it.
include(CheckCXXSourceCompiles)

set(CMAKE_REQUIRED_LIBRARIES onced::rocksdb)
# Another library is another answer.
string(MD5 library "${ONCED_rocksdb_LIBRARY}")
check_cxx_source_compiles(
  "namespace rocksdb { class SyncPoint { public: static SyncPoint *GetInstance(); }; }
   int main() { return rocksdb::SyncPoint::GetInstance() == nullptr; }"
  ONCED_ROCKSDB_HAS_SYNC_POINTS_${library})
unset(CMAKE_REQUIRED_LIBRARIES)
if(ONCED_ROCKSDB_HAS_SYNC_POINTS_${library})
  set(ONCED_ROCKSDB_ASSERTS 1)
else()
  set(ONCED_ROCKSDB_ASSERTS 0)
endif()
