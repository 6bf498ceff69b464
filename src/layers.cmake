# The layers, lowest first. A folder includes only include/onced/ and the layers above its line here; tools/check holds it to that.
onced_layer(job
  src/job/clock.cpp
  src/job/error.cpp
  src/job/ids.cpp)
