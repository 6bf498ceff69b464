# The layers, lowest first. A folder includes only include/onced/ and the layers listed before it; tools/check holds it to that.
find_package(nlohmann_json REQUIRED)
onced_layer(base
  src/base/backoff.cpp
  src/base/child_process.cpp
  src/base/descriptor.cpp
  src/base/directory_kind.cpp
  src/base/directory_lock.cpp
  src/base/directory_rights.cpp
  src/base/error.cpp
  src/base/ids.cpp
  src/base/inode.cpp
  src/base/json_reader.cpp
  src/base/json_value.cpp
  src/base/kill_point.cpp
  src/base/messagepack.cpp
  src/base/numbers.cpp
  src/base/scratch_directory.cpp
  src/base/spawn.cpp
  src/base/system.cpp
  src/base/utf8.cpp
  src/base/version.cpp
  src/base/wake.cpp)
# The commit is looked up at every build; only when it has changed is its header written, and this one file compiled again.
add_custom_target(onced_commit
  COMMAND "${CMAKE_COMMAND}" -DSOURCE_DIR=${CMAKE_CURRENT_SOURCE_DIR}
          -DOUTPUT=${CMAKE_BINARY_DIR}/generated/onced_commit.hpp -P "${CMAKE_CURRENT_SOURCE_DIR}/cmake/version.cmake"
  BYPRODUCTS "${CMAKE_BINARY_DIR}/generated/onced_commit.hpp"
  COMMENT "Looking up the commit" VERBATIM)
add_dependencies(onced_base onced_commit)
set_source_files_properties(src/base/version.cpp PROPERTIES
  INCLUDE_DIRECTORIES "${CMAKE_BINARY_DIR}/generated"
  COMPILE_DEFINITIONS "ONCED_VERSION=\"${PROJECT_VERSION}\";ONCED_BUILD_TYPE=\"${CMAKE_BUILD_TYPE}\";ONCED_ROCKSDB_ASSERTS=${ONCED_ROCKSDB_ASSERTS}")
target_link_libraries(onced_base PRIVATE nlohmann_json::nlohmann_json)
onced_layer(job
  src/job/canonical.cpp
  src/job/digest.cpp
  src/job/exact_sum.cpp
  src/job/handlers.cpp
  src/job/job_parser.cpp
  src/job/relayed_job.cpp
  src/job/sum.cpp)
onced_layer(engine
  src/engine/engine.cpp)
onced_layer(store
  src/store/batch_commit.cpp
  src/store/cache/byte_cache.cpp
  src/store/cache/committed_cache.cpp
  src/store/job_queue.cpp
  src/store/mend.cpp
  src/store/names.cpp
  src/store/opening.cpp
  src/store/operator_changes.cpp
  src/store/reading.cpp
  src/store/recount.cpp
  src/store/relay_queue.cpp
  src/store/row_changes.cpp
  src/store/rows/older_sums.cpp
  src/store/rows/queue_row.cpp
  src/store/rows/records.cpp
  src/store/rows/relay_row.cpp
  src/store/store.cpp
  src/store/store_keeper.cpp
  src/store/suspects/guarded_run.cpp
  src/store/suspects/running_slots.cpp
  src/store/suspects/suspects.cpp
  src/store/unit_of_work.cpp
  src/store/verdict.cpp
  src/store/verifier.cpp
  src/store/write_gate.cpp)
onced_layer(rocksdb
  src/rocksdb/database.cpp
  src/rocksdb/durable_mark.cpp
  src/rocksdb/info_log.cpp
  src/rocksdb/log_files.cpp
  src/rocksdb/loss_check.cpp
  src/rocksdb/open_store.cpp
  src/rocksdb/place.cpp
  src/rocksdb/rocksdb_engine.cpp
  src/rocksdb/status.cpp
  src/rocksdb/sum_rows.cpp
  src/rocksdb/tuning.cpp)
onced_layer(wire
  src/wire/batch_decoder.cpp
  src/wire/control_endpoint.cpp
  src/wire/endpoint.cpp
  src/wire/endpoint_lock.cpp
  src/wire/messages.cpp
  src/wire/query.cpp
  src/wire/raw_message.cpp
  src/wire/sockets.cpp
  src/wire/worker_message_decoder.cpp)
onced_layer(admin
  src/admin/letter_answers.cpp
  src/admin/map_writer.cpp
  src/admin/queries.cpp
  src/admin/queue_answers.cpp
  src/admin/request.cpp
  src/admin/store_answers.cpp)
onced_layer(sender
  src/sender/connection.cpp
  src/sender/delivery_events.cpp
  src/sender/lab.cpp
  src/sender/outbox.cpp
  src/sender/recovery.cpp
  src/sender/redelivery.cpp
  src/sender/sender.cpp
  src/sender/unsettled.cpp)
onced_layer(runner
  src/runner/answers.cpp
  src/runner/attempt.cpp
  src/runner/command.cpp
  src/runner/executor.cpp
  src/runner/job_lock.cpp
  src/runner/leases.cpp
  src/runner/relay.cpp
  src/runner/runner_context.cpp
  src/runner/schedule.cpp
  src/runner/time_keeper.cpp)
target_link_libraries(onced_runner PRIVATE nlohmann_json::nlohmann_json)
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
  rehearsal/child.cpp
  rehearsal/companion.cpp
  rehearsal/conclusions.cpp
  rehearsal/deliveries.cpp
  rehearsal/disk.cpp
  rehearsal/effects.cpp
  rehearsal/evidence.cpp
  rehearsal/files.cpp
  rehearsal/json.cpp
  rehearsal/machine.cpp
  rehearsal/page.cpp
  rehearsal/plan.cpp
  rehearsal/plan_check.cpp
  rehearsal/record.cpp
  rehearsal/record_form.cpp
  rehearsal/record_rules.cpp
  rehearsal/rehearsal.cpp
  rehearsal/scenario_run.cpp
  rehearsal/scenarios.cpp
  rehearsal/stage.cpp
  rehearsal/time.cpp
  rehearsal/timeline.cpp
  rehearsal/toml_depth.cpp
  rehearsal/traces.cpp)
find_package(tomlplusplus REQUIRED)
target_link_libraries(onced_rehearsal PUBLIC nlohmann_json::nlohmann_json PRIVATE tomlplusplus::tomlplusplus)
# Where an installation keeps the programs that only a rehearsal starts.
set(onced_rehearsal_programs "${CMAKE_INSTALL_LIBEXECDIR}/onced")
file(RELATIVE_PATH programs_from_bin "/${CMAKE_INSTALL_BINDIR}" "/${onced_rehearsal_programs}")
set_source_files_properties(rehearsal/companion.cpp PROPERTIES
  COMPILE_DEFINITIONS "ONCED_REHEARSAL_PROGRAMS=\"${programs_from_bin}\"")
