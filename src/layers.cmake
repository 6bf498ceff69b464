# The layers, lowest first. A folder includes only include/onced/ and the layers listed before it; tools/check holds it to that.
find_package(nlohmann_json REQUIRED)
onced_layer(job
  src/job/canonical.cpp
  src/job/digest.cpp
  src/job/error.cpp
  src/job/exact_sum.cpp
  src/job/handlers.cpp
  src/job/ids.cpp
  src/job/job_parser.cpp
  src/job/json_reader.cpp
  src/job/json_value.cpp
  src/job/messagepack.cpp
  src/job/numbers.cpp
  src/job/relayed_job.cpp
  src/job/sum.cpp
  src/job/system.cpp
  src/job/utf8.cpp
  src/job/version.cpp)
# The commit is looked up at every build; only when it has changed is its header written, and this one file compiled again.
add_custom_target(onced_commit
  COMMAND "${CMAKE_COMMAND}" -DSOURCE_DIR=${CMAKE_CURRENT_SOURCE_DIR}
          -DOUTPUT=${CMAKE_BINARY_DIR}/generated/onced_commit.hpp -P "${CMAKE_CURRENT_SOURCE_DIR}/cmake/version.cmake"
  BYPRODUCTS "${CMAKE_BINARY_DIR}/generated/onced_commit.hpp"
  COMMENT "Looking up the commit" VERBATIM)
add_dependencies(onced_job onced_commit)
set_source_files_properties(src/job/version.cpp PROPERTIES
  INCLUDE_DIRECTORIES "${CMAKE_BINARY_DIR}/generated"
  COMPILE_DEFINITIONS "ONCED_VERSION=\"${PROJECT_VERSION}\";ONCED_BUILD_TYPE=\"${CMAKE_BUILD_TYPE}\";ONCED_ROCKSDB_ASSERTS=${ONCED_ROCKSDB_ASSERTS}")
target_link_libraries(onced_job PRIVATE nlohmann_json::nlohmann_json)
onced_layer(delivery
  src/delivery/backoff.cpp
  src/delivery/kill_point.cpp
  src/delivery/redelivery.cpp)
onced_layer(store
  src/store/byte_cache.cpp
  src/store/commit_lane.cpp
  src/store/committed_cache.cpp
  src/store/database.cpp
  src/store/dead_letter_changes.cpp
  src/store/descriptor.cpp
  src/store/directory_kind.cpp
  src/store/directory_lock.cpp
  src/store/directory_rights.cpp
  src/store/durable_mark.cpp
  src/store/guarded_run.cpp
  src/store/info_log.cpp
  src/store/inode.cpp
  src/store/job_queue.cpp
  src/store/lane_writes.cpp
  src/store/locked_job.cpp
  src/store/log_files.cpp
  src/store/loss_check.cpp
  src/store/measured_commit.cpp
  src/store/mend_queue.cpp
  src/store/names.cpp
  src/store/place.cpp
  src/store/queue_lane.cpp
  src/store/queue_row.cpp
  src/store/records.cpp
  src/store/recount.cpp
  src/store/relay_queue.cpp
  src/store/relay_row.cpp
  src/store/running_slots.cpp
  src/store/standing.cpp
  src/store/store.cpp
  src/store/store_keeper.cpp
  src/store/suspects.cpp
  src/store/tuning.cpp
  src/store/verdict.cpp
  src/store/verifier.cpp)
onced_layer(wire
  src/wire/batch_decoder.cpp
  src/wire/control_endpoint.cpp
  src/wire/endpoint.cpp
  src/wire/endpoint_lock.cpp
  src/wire/messages.cpp
  src/wire/query.cpp
  src/wire/raw_message.cpp
  src/wire/sockets.cpp
  src/wire/wake.cpp
  src/wire/worker_message_decoder.cpp)
onced_layer(sender
  src/sender/connection.cpp
  src/sender/delivery_events.cpp
  src/sender/lab.cpp
  src/sender/outbox.cpp
  src/sender/recovery.cpp
  src/sender/sender.cpp
  src/sender/unsettled.cpp)
onced_layer(queue
  src/queue/answers.cpp
  src/queue/attempt.cpp
  src/queue/board.cpp
  src/queue/command.cpp
  src/queue/executor.cpp
  src/queue/job_lock.cpp
  src/queue/leases.cpp
  src/queue/relay.cpp
  src/queue/runner.cpp
  src/queue/spawn.cpp
  src/queue/time_keeper.cpp)
target_link_libraries(onced_queue PRIVATE nlohmann_json::nlohmann_json)
onced_layer(worker
  src/worker/batch_thread.cpp
  src/worker/delivery_events.cpp
  src/worker/gateway.cpp
  src/worker/handover.cpp
  src/worker/intake.cpp
  src/worker/late_replies.cpp
  src/worker/memory_plan.cpp
  src/worker/outgoing.cpp
  src/worker/query_threads.cpp
  src/worker/query_turns.cpp
  src/worker/reply_lab.cpp
  src/worker/routes.cpp
  src/worker/unread.cpp
  src/worker/worker.cpp)
onced_layer(rehearsal
  src/rehearsal/child.cpp
  src/rehearsal/companion.cpp
  src/rehearsal/conclusions.cpp
  src/rehearsal/deliveries.cpp
  src/rehearsal/disk.cpp
  src/rehearsal/effects.cpp
  src/rehearsal/evidence.cpp
  src/rehearsal/files.cpp
  src/rehearsal/json.cpp
  src/rehearsal/machine.cpp
  src/rehearsal/page.cpp
  src/rehearsal/plan.cpp
  src/rehearsal/plan_check.cpp
  src/rehearsal/record.cpp
  src/rehearsal/record_form.cpp
  src/rehearsal/record_rules.cpp
  src/rehearsal/rehearsal.cpp
  src/rehearsal/scenario_run.cpp
  src/rehearsal/scenarios.cpp
  src/rehearsal/stage.cpp
  src/rehearsal/time.cpp
  src/rehearsal/timeline.cpp
  src/rehearsal/toml_depth.cpp
  src/rehearsal/traces.cpp)
find_package(tomlplusplus REQUIRED)
target_link_libraries(onced_rehearsal PUBLIC nlohmann_json::nlohmann_json PRIVATE tomlplusplus::tomlplusplus)
# Where an installation keeps the programs that only a rehearsal starts.
set(onced_rehearsal_programs "${CMAKE_INSTALL_LIBEXECDIR}/onced")
file(RELATIVE_PATH programs_from_bin "/${CMAKE_INSTALL_BINDIR}" "/${onced_rehearsal_programs}")
set_source_files_properties(src/rehearsal/companion.cpp PROPERTIES
  COMPILE_DEFINITIONS "ONCED_REHEARSAL_PROGRAMS=\"${programs_from_bin}\"")
