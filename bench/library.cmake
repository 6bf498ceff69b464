# onced_bench: what the benchmarks share, and `onced bench` too, so it is built where no benchmark is.
# What find_package finds is known in the folder that asks, so each asks before the guard.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
include_guard(GLOBAL)

add_library(onced_bench STATIC
  "${CMAKE_CURRENT_LIST_DIR}/held_signals.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/measurement.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/process_usage.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/producer.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/table.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/worker_process.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/workload.cpp")
target_include_directories(onced_bench PUBLIC "${CMAKE_CURRENT_LIST_DIR}")
target_link_libraries(onced_bench PUBLIC onced nlohmann_json::nlohmann_json PRIVATE onced_flags onced::zmq fmt::fmt)
