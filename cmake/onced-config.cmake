# find_package(onced) gives the target onced::onced.
include("${CMAKE_CURRENT_LIST_DIR}/dependencies.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/onced-targets.cmake")
