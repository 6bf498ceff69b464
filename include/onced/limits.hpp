#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

// Every limit of onced, each with its unit and its reason. A number that bounds something is here or nowhere.
namespace onced::limits {

// --- The job ------------------------------------------------------------------------------------------------------

// Fits the one-byte length prefix of the key (docs/storage.md).
inline constexpr std::size_t operation_id_bytes_max = 255;
inline constexpr std::size_t effect_key_bytes_max = 255;
// A type is a name in a registry, not data.
inline constexpr std::size_t type_bytes_max = 64;
// W3C trace context needs 55 bytes in version 00; later versions may be longer.
inline constexpr std::size_t traceparent_bytes_max = 255;
// Containers inside each other, the job's own map included. Enough for any intent written by hand; bounds every stack.
inline constexpr std::size_t nesting_max = 16;
// Elements of `numbers` in a `sum` job.
inline constexpr std::size_t sum_numbers_max = 65'536;
// Bytes of a handler's canonical result. It is repeated in every duplicate's reply, so it stays small.
inline constexpr std::size_t result_bytes_max = 64 * 1024;
// Bytes of text that explain an outcome, in replies and dead letters.
inline constexpr std::size_t detail_bytes_max = 1024;

// --- The wire -----------------------------------------------------------------------------------------------------

// One ZeroMQ frame, either way. ZeroMQ closes the connection of whoever exceeds it.
inline constexpr std::size_t message_bytes_max = 1024 * 1024;
// Deliveries in one message.
inline constexpr std::size_t deliveries_per_message_max = 4096;
// What the envelope of a batch of one adds to the job: array and bin headers, ids, numbers (61 bytes at most).
inline constexpr std::size_t envelope_bytes_max = 64;
// The largest job that fits a message. A sender settles a larger one as `invalid` by itself.
inline constexpr std::size_t job_bytes_max = message_bytes_max - envelope_bytes_max;
// A query or greeting of a peer is a few ids.
inline constexpr std::size_t query_bytes_max = 4096;
// Rows of one answer to `dead-letters list`, `pending list` or `audit`; the asker pages on.
inline constexpr std::size_t rows_per_answer_max = 100;
// Messages waiting in one peer's pipe, each way. With the size of a message it bounds the memory of a peer. A worker
// lets fewer messages of jobs wait where its memory is short (WorkerOptions::memory_bytes).
inline constexpr int receive_high_water_messages_max = 16;
inline constexpr int send_high_water_messages = 64;
// Bytes of replies after which their frame is closed. Small, as many may wait for a sender that does not read them; a
// reply that is larger by itself has a frame by itself.
inline constexpr std::size_t reply_frame_bytes_target = 16 * 1024;
// Ways back to senders that the worker remembers: a sender id and a connection over which it said hello. Beyond it the
// connection with most of them loses the one silent for longest, whose sender greets again.
inline constexpr std::size_t known_senders_max = 4096;
// Of one sender id: anyone may say hello with it, and takes no way back from who said hello before. Replies go each
// way.
inline constexpr std::size_t routes_a_sender_max = 4;
// Bytes sent to one peer that ZeroMQ still holds as the peer does not read: replies, greetings and answers. A frame
// that does not fit is dropped, or is replaced by a short error; a peer that has read everything may be sent any one
// frame.
inline constexpr std::size_t unread_bytes_max = 1024 * 1024 + 128 * 1024;
// One frame of an answer: a dead letter with its bytes, or a page of rows.
inline constexpr std::size_t answer_bytes_max = 4 * 1024 * 1024;

// --- The worker ---------------------------------------------------------------------------------------------------

inline constexpr unsigned worker_threads_max = 64;
// Messages and bytes that wait between the gateway and the worker threads. Beyond it the gateway stops reading.
inline constexpr std::size_t handover_messages_max = 1024;
inline constexpr std::size_t handover_bytes_max = 16 * 1024 * 1024;
// What a connection may have taken in each of its turns, in bytes; and as how many bytes a delivery counts beside its
// own, as a commit's work is by delivery and by byte.
inline constexpr std::size_t turn_bytes = 64 * 1024;
inline constexpr std::size_t delivery_turn_bytes = 256;
// What one worker thread takes into one transaction, so counted: it stops taking at the first of these that is reached.
inline constexpr std::size_t batch_deliveries_target = 4096;
inline constexpr std::size_t batch_bytes_target = 1536 * 1024;
// A message that counts as more than this is taken by itself: nobody else's job waits for it in the same transaction.
inline constexpr std::size_t large_message_bytes = 512 * 1024;
// Encoded replies that wait for the gateway. Beyond it replies are dropped, which the next delivery heals.
inline constexpr std::size_t outgoing_bytes_max = 16 * 1024 * 1024;
// Memory that a worker plans with: the program with its libraries, buffers and the allocator's slack; and for each
// worker thread a batch, what parsing makes of it, and its transaction. Measured (docs/operations.md).
inline constexpr std::size_t process_bytes = 48 * 1024 * 1024;
inline constexpr std::size_t worker_thread_bytes = 24 * 1024 * 1024;
// And for each thread that runs handlers, a job with its canonical form, its JSON, and what a command writes; and once
// for all of them the tree in between, while a payload becomes JSON.
inline constexpr std::size_t executor_bytes = 6 * 1024 * 1024;
inline constexpr std::size_t command_conversion_bytes = 24 * 1024 * 1024;
// And for each worker that messages are sent on to, those in memory, and those in its sender's pipes.
inline constexpr std::size_t relay_target_bytes = 16 * 1024 * 1024;
// RocksDB's cache, memtables included: below this it writes tables too small to be worth it.
inline constexpr std::size_t block_cache_bytes_min = 32 * 1024 * 1024;
// Queued jobs whose senders a worker remembers, to tell them the final outcome, and of one job how many. Who is
// forgotten asks again.
inline constexpr std::size_t late_replies_jobs_max = 65'536;
inline constexpr std::size_t late_replies_a_job_max = 4;
// Queries of one connection that wait while one of them is answered; beyond it a query is answered with an error at
// once.
inline constexpr std::size_t queries_a_connection_waiting_max = 4;
// The same of all connections from the network, and of all through control.sock. Beyond it the connection that has most
// waiting loses one.
inline constexpr std::size_t network_queries_waiting_max = 256;
inline constexpr std::size_t operator_queries_waiting_max = 64;

// --- The store ----------------------------------------------------------------------------------------------------

// Dead letters kept. At the cap a delivery that would add one is answered `busy`.
inline constexpr std::uint64_t dead_letters_max = 1'000'000;
// Bytes of the jobs in them; as the count, or the largest jobs would fill a disk with far fewer.
inline constexpr std::uint64_t dead_letter_bytes_max = std::uint64_t{4} * 1024 * 1024 * 1024;
// Bytes of dead letters written a second, by and by: what is no job must leave the disk to those that are. To write
// and sync a job of 1 MiB keeps a common disk from all else for some 50 ms; so one a second touches few of the others.
inline constexpr std::uint64_t dead_letter_bytes_a_second = 1024 * 1024;
// What so much time brings may be written at once: mistakes come in bursts, and are seldom large.
inline constexpr std::chrono::seconds dead_letter_burst{16};
// The least and the most that may be asked for.
inline constexpr std::uint64_t dead_letter_bytes_a_second_min = 64 * 1024;
inline constexpr std::uint64_t dead_letter_bytes_a_second_max = 1024 * 1024 * 1024;
// Bytes of dead letters looked at for one page, filtered or not.
inline constexpr std::size_t dead_letters_scanned_bytes_max = 16 * 1024 * 1024;
// Dead letters looked at for one page of a filtered list: an answer takes a fraction of a second, found or not.
inline constexpr std::size_t dead_letters_scanned_max = 10'000;
// Queued jobs in custody, and their bytes. At either a queued job that is new is answered `busy`: its sender keeps it.
inline constexpr std::uint64_t queue_jobs_max = 1'000'000;
inline constexpr std::uint64_t queue_bytes_max = std::uint64_t{4} * 1024 * 1024 * 1024;
// Rows of the queue looked at for one page of those that wait for their owner, or are of one type.
inline constexpr std::size_t queue_scanned_max = 10'000;
// Times a queued job is handed to its handler before it is a dead letter, where its type does not say; and times an
// inline handler may end the process.
inline constexpr std::uint32_t max_receive_count = 5;
// Threads of which it is noted which job their inline handler runs: those that commit, and the one that redrives.
inline constexpr std::size_t running_slots = worker_threads_max + 1;
// Jobs whose inline handlers have ended the process, and that are not settled. Each takes a crash to get in; at an
// opening those with the fewest are forgotten first.
inline constexpr std::size_t suspects_max = 1024;
// Handlers of queued jobs: of one type at once, and of all; each is a thread, and often a process.
inline constexpr unsigned handler_concurrency_max = 64;
inline constexpr unsigned handler_threads_max = 256;
// Jobs of one type that a worker keeps in memory, leased ones included; the others stay in the store until their turn.
inline constexpr std::size_t queue_jobs_in_memory = 16'384;
// The longest deadline, visibility timeout, grace period or backoff of a handler.
inline constexpr std::chrono::hours handler_time_max{24};
// Messages that one result sends on; each is written with the result.
inline constexpr std::size_t relay_messages_max = 16;
// Bytes of them together: as much as the result that they are written beside.
inline constexpr std::size_t relay_message_bytes_max = result_bytes_max;
// The name of a worker that messages are sent on to: a name in a configuration, not data.
inline constexpr std::size_t relay_name_bytes_max = 64;
// Messages that wait to be sent on, and their bytes. At either, a job whose result has messages is answered `busy`.
inline constexpr std::uint64_t relay_jobs_max = 1'000'000;
inline constexpr std::uint64_t relay_bytes_max = std::uint64_t{4} * 1024 * 1024 * 1024;
// Workers that messages are sent on to: each has a sender with two connections and its share of memory.
inline constexpr std::size_t relay_targets_max = 16;
// Messages to one of them in memory, and their bytes; the others stay in the store until their turn.
inline constexpr std::size_t relay_jobs_in_memory = 4096;
inline constexpr std::size_t relay_bytes_in_memory = 4 * 1024 * 1024;
// Messages that one read of the store takes into memory, and their bytes.
inline constexpr std::size_t relay_read_jobs = 256;
inline constexpr std::size_t relay_read_bytes = 1024 * 1024;
// How long what cannot go on waits: a dead letter for room, a worker's name for one that is configured.
inline constexpr std::chrono::seconds relay_retry{5};
// The payload that a handler's command may be given, as MessagePack: as JSON it is a few times larger.
inline constexpr std::size_t command_payload_bytes_max = 256 * 1024;
// What a handler's command may write: a result as JSON, which is longer than its MessagePack form, and messages.
inline constexpr std::size_t command_output_bytes_max = 256 * 1024;
// What went wrong with a queued job: the latest errors, and the bytes of each. A cause, and the end of a command's
// stderr.
inline constexpr std::size_t queue_errors_kept_max = 5;
inline constexpr std::size_t queue_error_bytes_max = 4096;
// Changes remembered by the audit; the oldest goes first.
inline constexpr std::uint64_t audit_rows_max = 100'000;
// Who made a change, and why: a name, and an incident's reference or a sentence. Bytes.
inline constexpr std::size_t audit_by_bytes_max = 255;
inline constexpr std::size_t audit_why_bytes_max = 1024;
// Problems that a verification tells one by one; the rest is counted.
inline constexpr std::size_t problems_told_max = 100;
// Times a transaction that lost a race for locks is tried again before its deliveries are answered `busy`.
inline constexpr unsigned commit_retries_max = 16;

// --- The sender ---------------------------------------------------------------------------------------------------

// Jobs and bytes that a sender in memory holds unsettled or settled but not yet fetched; then `submit` waits.
inline constexpr std::size_t sender_jobs_max = 65'536;
inline constexpr std::size_t sender_bytes_max = 64 * 1024 * 1024;
// Jobs and bytes of jobs that an outbox holds; then `submit` waits. The bytes leave disks of common size room for the
// rest, and the jobs are counted at each opening by a scan of seconds.
inline constexpr std::uint64_t outbox_jobs_max = 50'000'000;
inline constexpr std::uint64_t outbox_bytes_max = 32ULL * 1024 * 1024 * 1024;
// Memory of an outbox's database: its memtables and its cache of blocks.
inline constexpr std::size_t outbox_memtable_bytes = 8 * 1024 * 1024;
inline constexpr std::size_t outbox_cache_bytes = 8 * 1024 * 1024;
// Jobs and bytes that one read of the outbox takes into memory.
inline constexpr std::size_t outbox_read_jobs = 1024;
inline constexpr std::size_t outbox_read_bytes = 2 * 1024 * 1024;
// Recovery times that `SenderStats` keeps: the latest.
inline constexpr std::size_t recoveries_kept_max = 4096;
// Jobs in flight: sent, and their acknowledgement not yet timed out.
inline constexpr std::size_t window_jobs_max = 8192;
// Bytes of jobs in flight.
inline constexpr std::size_t window_bytes_max = 8 * 1024 * 1024;
// Jobs packed into one message by `Sender`: past this, packing gains nothing and latency grows.
inline constexpr std::size_t deliveries_per_send = 256;
// The longest wait before a job is sent again. Keeps timers far from overflow; who waits longer does not want a resend.
inline constexpr std::chrono::hours retry_delay_max{24};
// How long an accepted job waits before its sender asks again: rare beside the seconds that a queued job may take.
inline constexpr std::chrono::seconds accepted_ask_again{30};

static_assert(operation_id_bytes_max <= 255 && effect_key_bytes_max <= 255 && type_bytes_max <= 255,
              "the key prefixes each of them with one byte of length");
static_assert(envelope_bytes_max < message_bytes_max, "a message holds at least one job");
static_assert(result_bytes_max + detail_bytes_max + 2 * envelope_bytes_max <= message_bytes_max &&
                  reply_frame_bytes_target <= message_bytes_max,
              "a sender receives any frame of replies");
static_assert(detail_bytes_max + 2 * envelope_bytes_max <= reply_frame_bytes_target,
              "only a large result makes a frame larger");
static_assert(outgoing_bytes_max >= 2 * answer_bytes_max, "any one answer fits beside another");
static_assert(answer_bytes_max >= 2 * message_bytes_max &&
                  answer_bytes_max >= rows_per_answer_max * 8 * detail_bytes_max,
              "any one dead letter, and any page of rows, fits an answer");
static_assert(
    unread_bytes_max >= message_bytes_max + queue_errors_kept_max * queue_error_bytes_max + 16 * detail_bytes_max &&
        unread_bytes_max >= send_high_water_messages * reply_frame_bytes_target,
    "any answer to the network is within what a peer may leave unread, and so are as many replies as its pipe takes");
static_assert(audit_by_bytes_max + audit_why_bytes_max + 256 <= query_bytes_max,
              "a change with who and why fits a query");
static_assert(answer_bytes_max >= rows_per_answer_max * 2 * (audit_by_bytes_max + audit_why_bytes_max),
              "any page of the audit fits an answer");
static_assert(suspects_max >= running_slots, "all that one crash brings have room");
static_assert(dead_letter_bytes_max >= message_bytes_max, "any one dead letter has room");
static_assert(queue_bytes_max >= message_bytes_max, "any one queued job has room");
static_assert(message_bytes_max + queue_errors_kept_max * queue_error_bytes_max + 16 * detail_bytes_max <=
                  answer_bytes_max,
              "a dead letter or a queued job with its errors fits an answer");
static_assert(answer_bytes_max >= rows_per_answer_max * (queue_error_bytes_max + 4 * detail_bytes_max),
              "any page of the queue, each job with its last error, fits an answer");
static_assert(command_output_bytes_max >= 2 * result_bytes_max, "the largest result fits a command's output");
static_assert(relay_message_bytes_max + 1024 <= job_bytes_max, "a message with its ids can be sent");
static_assert(relay_jobs_max >= relay_messages_max &&
                  relay_bytes_max >= relay_message_bytes_max + relay_messages_max * std::size_t{1024},
              "the messages of any one result have room");
static_assert(relay_read_bytes >= relay_message_bytes_max + 1024 && relay_bytes_in_memory >= 2 * relay_read_bytes &&
                  relay_jobs_in_memory >= 2 * relay_read_jobs,
              "any message can be read, and what is read has room");
static_assert(handler_concurrency_max <= handler_threads_max, "any one type can have the threads that it may ask for");
static_assert(handover_bytes_max >= message_bytes_max, "one message always fits the hand-over");
static_assert(turn_bytes < large_message_bytes && large_message_bytes < batch_bytes_target,
              "several turns fit a batch, and so does the smallest large message");
static_assert(batch_deliveries_target >= deliveries_per_send, "one send of a well-behaved sender fits a batch");
static_assert(deliveries_per_send <= deliveries_per_message_max, "what the sender packs is accepted");
static_assert(window_bytes_max >= job_bytes_max, "any one job fits the window");
static_assert(accepted_ask_again <= retry_delay_max, "an accepted job is asked for within the longest wait");
static_assert(sender_bytes_max >= window_bytes_max && sender_jobs_max >= window_jobs_max,
              "the window lies inside what the sender holds");
static_assert(sender_jobs_max >= relay_jobs_in_memory && sender_bytes_max >= relay_bytes_in_memory,
              "a sender takes what is to be sent on without waiting");
static_assert(outbox_jobs_max >= sender_jobs_max && outbox_bytes_max >= sender_bytes_max,
              "the largest batch that may be submitted fits an empty outbox");
static_assert(outbox_read_bytes >= job_bytes_max, "any one job fits a read of the outbox");

} // namespace onced::limits
