#pragma once

#include "registration.hpp"

// Each registers the benchmarks of one part. What a benchmark needs is made when it first runs.
// Where something fails, or comes out other than it must, it throws std::runtime_error.
namespace onced::bench::micro {

void register_jobs(Registry &registry);       // parse, canonical form, digest
void register_envelopes(Registry &registry);  // batches and replies, both ways
void register_lookups(Registry &registry);    // in the cache, in the memtable, in a table, absent
void register_commits(Registry &registry);    // new jobs, by batch and threads
void register_redelivery(Registry &registry); // the sender's machine

} // namespace onced::bench::micro
