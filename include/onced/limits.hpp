#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

// Every limit of onced, each with its unit and its reason. A number that bounds something stands here and nowhere else.
// A name ends with its unit. The assertions at the end hold the relations between them.
namespace onced::limits {

// --- The job ------------------------------------------------------------------------------------------------------

// Bytes. The key prefixes each with one byte of length (docs/storage.md).
inline constexpr std::size_t operation_id_bytes_max = 255;
inline constexpr std::size_t effect_key_bytes_max = 255;
// Bytes. A type is a name in a registry, not data.
inline constexpr std::size_t type_bytes_max = 64;
// Bytes. W3C trace context needs 55 bytes in version 00. Later versions may be longer.
inline constexpr std::size_t traceparent_bytes_max = 255;
// Containers inside each other, the job's own map included. It suffices for any intent written by hand, and bounds
// every stack.
inline constexpr std::size_t nesting_max = 16;
// Elements of `numbers` in a `sum` job. It bounds the time of one inline handler.
inline constexpr std::size_t sum_numbers_max = 65'536;
// Bytes of a handler's canonical result. Every duplicate's reply repeats it, so it stays small.
inline constexpr std::size_t result_bytes_max = 64 * 1024;
// Bytes of text that explain an outcome, in replies and dead letters.
inline constexpr std::size_t detail_bytes_max = 1024;

// --- The wire -----------------------------------------------------------------------------------------------------

// Bytes of one ZeroMQ frame, either way. ZeroMQ closes the connection of a peer that exceeds it.
inline constexpr std::size_t message_bytes_max = 1024 * 1024;
// Deliveries in one message: one batch of a worker thread.
inline constexpr std::size_t deliveries_per_message_max = 4096;
// Bytes that the envelope of a batch of one adds to the job: array and bin headers, ids, numbers (61 at most).
inline constexpr std::size_t envelope_bytes_max = 64;
// Bytes of the largest job that fits a message. A sender settles a larger one as `invalid` by itself.
inline constexpr std::size_t job_bytes_max = message_bytes_max - envelope_bytes_max;
// Bytes of a query or hello of a peer: a few ids.
inline constexpr std::size_t query_bytes_max = 4096;
// Rows of one answer to `dead-letters list`, `pending list` or `audit`; the asker pages on.
inline constexpr std::size_t rows_per_answer_max = 100;
// Messages that wait in the pipe of one peer, each way. With the size of a message they bound the memory of a peer. A
// worker with little memory (WorkerOptions::memory_bytes) lets fewer messages of jobs wait.
inline constexpr int receive_high_water_messages_max = 16;
inline constexpr int send_high_water_messages = 64;
// Bytes of replies after which their frame is closed. It is small, because many frames may wait for a sender that does
// not read. A larger reply has a frame by itself.
inline constexpr std::size_t reply_frame_bytes_target = 16 * 1024;
// Ways back to senders that the worker remembers. A way back is a sender id and a connection over which it said hello.
// At the limit, the connection with most ways back loses the one silent for longest. Its sender says hello again.
inline constexpr std::size_t known_senders_max = 4096;
// Ways back of one sender id. Replies go over all of them. So a stranger that says hello with a foreign id takes no
// replies away from the sender.
inline constexpr std::size_t routes_a_sender_max = 4;
// Bytes of replies, greetings and answers that ZeroMQ holds for one peer, because the peer does not read. A reply that
// does not fit is dropped. An answer that does not fit is replaced by a short error. A peer that has read everything
// may be sent any one frame.
inline constexpr std::size_t unread_bytes_max = 1024 * 1024 + 128 * 1024;
// Bytes of one frame of an answer: a dead letter with its bytes, or a page of rows.
inline constexpr std::size_t answer_bytes_max = 4 * 1024 * 1024;

// --- The worker ---------------------------------------------------------------------------------------------------

inline constexpr unsigned worker_threads_max = 64;
// Messages and bytes that wait between the gateway and the worker threads. At the limit the gateway stops reading.
inline constexpr std::size_t handover_messages_max = 1024;
inline constexpr std::size_t handover_bytes_max = 16 * 1024 * 1024;
// Bytes that the worker takes of a connection in each of its turns. A delivery counts delivery_turn_bytes more than its
// own bytes, because a commit's work grows with deliveries and with bytes.
inline constexpr std::size_t turn_bytes = 64 * 1024;
inline constexpr std::size_t delivery_turn_bytes = 256;
// Deliveries and bytes (counted as in a turn) of one transaction. A worker thread stops taking at the first limit that
// it reaches.
inline constexpr std::size_t batch_deliveries_target = 4096;
inline constexpr std::size_t batch_bytes_target = 1536 * 1024;
// A message that counts as more bytes than this has a transaction by itself, so no other job waits for it.
inline constexpr std::size_t large_message_bytes = 512 * 1024;
// Bytes of encoded replies that wait for the gateway. Beyond it a reply is dropped, and the next delivery asks again.
inline constexpr std::size_t outgoing_bytes_max = 16 * 1024 * 1024;
// Bytes of memory that a worker plans with. `process_bytes`: the program with its libraries, buffers and the
// allocator's slack. `worker_thread_bytes`: for each worker thread a batch, its parsed form, and its transaction. Both
// were measured (docs/operations.md).
inline constexpr std::size_t process_bytes = 48 * 1024 * 1024;
inline constexpr std::size_t worker_thread_bytes = 24 * 1024 * 1024;
// `executor_bytes`: for each thread that runs handlers a job with its canonical form, its JSON, and the output of a
// command. `command_conversion_bytes`: once for all of them, the tree of a payload that becomes JSON.
inline constexpr std::size_t executor_bytes = 6 * 1024 * 1024;
inline constexpr std::size_t command_conversion_bytes = 24 * 1024 * 1024;
// For each worker that messages are sent on to: the messages in memory and in its sender's pipes.
inline constexpr std::size_t relay_target_bytes = 16 * 1024 * 1024;
// Bytes of RocksDB's cache, memtables included. With less, RocksDB writes tables that are too small to be worth it.
inline constexpr std::size_t block_cache_bytes_min = 32 * 1024 * 1024;
// Queued jobs whose senders a worker remembers, to send them the final outcome, and senders of one such job. A sender
// that is forgotten asks again.
inline constexpr std::size_t late_replies_jobs_max = 65'536;
inline constexpr std::size_t late_replies_a_job_max = 4;
// Queries of one connection that wait while one of them is answered. A query beyond them is answered with an error at
// once.
inline constexpr std::size_t queries_a_connection_waiting_max = 4;
// Queries that wait, of all connections from the network, and of all through control.sock. At the limit, the connection
// with most of them loses one.
inline constexpr std::size_t network_queries_waiting_max = 256;
inline constexpr std::size_t operator_queries_waiting_max = 64;

// --- The store ----------------------------------------------------------------------------------------------------

// Dead letters kept. At the cap a delivery that would add one is answered `busy`.
inline constexpr std::uint64_t dead_letters_max = 1'000'000;
// Bytes of the jobs in dead letters, a cap like the count: the largest jobs would fill a disk with far fewer rows.
inline constexpr std::uint64_t dead_letter_bytes_max = std::uint64_t{4} * 1024 * 1024 * 1024;
// Bytes of dead letters that may be written a second. Bad jobs must leave the disk to the good ones. Writing and
// syncing a job of 1 MiB keeps a common disk busy for some 50 ms, so one a second delays few others.
inline constexpr std::uint64_t dead_letter_bytes_a_second = 1024 * 1024;
// The bytes of so much time may be written at once, because mistakes come in bursts and are seldom large.
inline constexpr std::chrono::seconds dead_letter_burst{16};
// The least and the most bytes a second that a caller may ask for.
inline constexpr std::uint64_t dead_letter_bytes_a_second_min = 64 * 1024;
inline constexpr std::uint64_t dead_letter_bytes_a_second_max = 1024 * 1024 * 1024;
// Bytes of dead letters looked at for one page, filtered or not.
inline constexpr std::size_t dead_letters_scanned_bytes_max = 16 * 1024 * 1024;
// Dead letters looked at for one page of a filtered list. So an answer takes a fraction of a second, whatever it finds.
inline constexpr std::size_t dead_letters_scanned_max = 10'000;
// Queued jobs in custody, and their bytes. At either cap a new queued job is answered `busy`, and its sender keeps it.
inline constexpr std::uint64_t queue_jobs_max = 1'000'000;
inline constexpr std::uint64_t queue_bytes_max = std::uint64_t{4} * 1024 * 1024 * 1024;
// Rows of the queue looked at for one page of held jobs, or of jobs of one type.
inline constexpr std::size_t queue_scanned_max = 10'000;
// Receives of a queued job before it is a dead letter, unless its type says otherwise. Also the times that an inline
// handler may end the process.
inline constexpr std::uint32_t max_receive_count = 5;
// Threads that record the job whose inline handler they are running: the worker threads, and the thread that redrives.
inline constexpr std::size_t running_slots = worker_threads_max + 1;
// Unsettled jobs whose inline handlers have ended the process. Each came in by a crash. An opening forgets those with
// the fewest crashes first.
inline constexpr std::size_t suspects_max = 1024;
// Handlers of queued jobs that run at the same time: of one type, and of all types. Each is a thread, and often a
// process.
inline constexpr unsigned handler_concurrency_max = 64;
inline constexpr unsigned handler_threads_max = 256;
// Queued jobs of one type that a worker keeps in memory, leased ones included. The others stay in the store until their
// turn.
inline constexpr std::size_t queue_jobs_in_memory = 16'384;
// The longest deadline, visibility timeout, grace period or backoff of a handler.
inline constexpr std::chrono::hours handler_time_max{24};
// Messages that one result sends on. The transaction of the result writes all of them.
inline constexpr std::size_t relay_messages_max = 16;
// Bytes of the messages of one result together: as much as the result itself may have.
inline constexpr std::size_t relay_message_bytes_max = result_bytes_max;
// Bytes of the name of a worker that messages are sent on to. It is a name in a configuration, not data.
inline constexpr std::size_t relay_name_bytes_max = 64;
// Messages in the relay, and their bytes. At either cap a job whose result has messages is answered `busy`.
inline constexpr std::uint64_t relay_jobs_max = 1'000'000;
inline constexpr std::uint64_t relay_bytes_max = std::uint64_t{4} * 1024 * 1024 * 1024;
// Workers that messages are sent on to. Each has a sender with two connections and its share of memory.
inline constexpr std::size_t relay_targets_max = 16;
// Messages to one such worker in memory, and their bytes. The others stay in the store until their turn.
inline constexpr std::size_t relay_jobs_in_memory = 4096;
inline constexpr std::size_t relay_bytes_in_memory = 4 * 1024 * 1024;
// Messages that one read of the store takes into memory, and their bytes.
inline constexpr std::size_t relay_read_jobs = 256;
inline constexpr std::size_t relay_read_bytes = 1024 * 1024;
// The wait of a message that cannot go on: its dead letter needs room, or no worker of its name is configured.
inline constexpr std::chrono::seconds relay_retry{5};
// Bytes of the payload for a handler that is a command, as MessagePack. As JSON it is a few times larger.
inline constexpr std::size_t command_payload_bytes_max = 256 * 1024;
// Bytes of the output of such a handler: a result as JSON, which is longer than its MessagePack form, and messages.
inline constexpr std::size_t command_output_bytes_max = 256 * 1024;
// The latest errors of a queued job that are kept, and the bytes of each. An error is a cause, and the end of a
// command's stderr.
inline constexpr std::size_t queue_errors_kept_max = 5;
inline constexpr std::size_t queue_error_bytes_max = 4096;
// Changes that the audit remembers. The oldest goes first.
inline constexpr std::uint64_t audit_rows_max = 100'000;
// Bytes of who made a change (a name), and why (the reference of an incident, or a sentence).
inline constexpr std::size_t audit_by_bytes_max = 255;
inline constexpr std::size_t audit_why_bytes_max = 1024;
// Problems that a verification tells one by one. It only counts the rest.
inline constexpr std::size_t problems_told_max = 100;
// Times that a transaction which lost a race for locks is tried again. After that its deliveries are answered `busy`.
inline constexpr unsigned commit_retries_max = 16;

// --- The sender ---------------------------------------------------------------------------------------------------

// Jobs, and bytes of jobs, that a sender in memory holds: unsettled ones, and settled ones that nobody has fetched. At
// either limit `submit` waits.
inline constexpr std::size_t sender_jobs_max = 65'536;
inline constexpr std::size_t sender_bytes_max = 64 * 1024 * 1024;
// Jobs, and bytes of jobs, that an outbox holds. At either limit `submit` waits. The bytes leave room on disks of
// common size. Each opening counts the jobs by a scan, which takes seconds at this limit.
inline constexpr std::uint64_t outbox_jobs_max = 50'000'000;
inline constexpr std::uint64_t outbox_bytes_max = 32ULL * 1024 * 1024 * 1024;
// Bytes of memory of an outbox's database: of each memtable, and of its cache of blocks.
inline constexpr std::size_t outbox_memtable_bytes = 8 * 1024 * 1024;
inline constexpr std::size_t outbox_cache_bytes = 8 * 1024 * 1024;
// Jobs, and bytes of jobs, that one read of the outbox takes into memory.
inline constexpr std::size_t outbox_read_jobs = 1024;
inline constexpr std::size_t outbox_read_bytes = 2 * 1024 * 1024;
// Recovery times that `SenderStats` keeps. The oldest goes first.
inline constexpr std::size_t recoveries_kept_max = 4096;
// Jobs in flight: they are sent, and the wait for their acknowledgement has not ended.
inline constexpr std::size_t window_jobs_max = 8192;
// Bytes of jobs in flight.
inline constexpr std::size_t window_bytes_max = 8 * 1024 * 1024;
// Jobs that a `Sender` packs into one message. Beyond it packing gains nothing, and latency grows.
inline constexpr std::size_t deliveries_per_send = 256;
// The longest wait before a job is sent again. It keeps timers far from overflow. A caller that waits longer wants no
// resend.
inline constexpr std::chrono::hours retry_delay_max{24};
// The wait before a sender asks again for an accepted job. It is long beside the seconds that a queued job may take.
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
