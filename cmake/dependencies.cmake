# The libraries that onced stands on, found the same way by its own build and by an installed copy of it.
#
# RocksDB's own CMake package asks for the development files of every compressor it was built with, so the library is looked
# up by itself. To use another RocksDB than the system's: -DONCED_ROCKSDB_ROOT=DIR, with DIR/include and DIR/lib.
include(CMakeFindDependencyMacro)

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_dependency(Threads)
find_dependency(OpenSSL 3.0 COMPONENTS Crypto)
find_dependency(tl-expected CONFIG)

function(onced_find_library target header library root)
  if(TARGET ${target})
    return()
  endif()
  if(root)
    set(only NO_DEFAULT_PATH)
  endif()
  string(MAKE_C_IDENTIFIER "ONCED_${library}" name)
  find_path(${name}_INCLUDE_DIR ${header} HINTS "${root}/include" ${only} REQUIRED)
  find_library(${name}_LIBRARY ${library} HINTS "${root}/lib" "${root}/lib64" ${only} REQUIRED)
  mark_as_advanced(${name}_INCLUDE_DIR ${name}_LIBRARY)
  add_library(${target} UNKNOWN IMPORTED)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${${name}_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                                    "${${name}_INCLUDE_DIR}")
endfunction()

onced_find_library(onced::rocksdb rocksdb/db.h rocksdb "${ONCED_ROCKSDB_ROOT}")
onced_find_library(onced::zmq zmq.h zmq "")
