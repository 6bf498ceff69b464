#pragma once

#include <cstddef>

// What a rehearsal reads and plays at most. A plan and a record may come from a stranger. The limits of jobs and
// workers are in onced/limits.hpp.
namespace onced::rehearsal {

// Bytes of a plan: some pages of text. A parsed plan takes some dozen times as many.
inline constexpr std::size_t plan_bytes_max = 64UL * 1024;
// Bytes of the jobs of a plan.
inline constexpr std::size_t seeds_bytes_max = 4UL * 1024 * 1024;
// Jobs that one scenario sends, copies included, and so the deliveries of which its evidence tells.
inline constexpr std::size_t scenario_jobs_max = 12'000;
// Bytes of a record.json: a delivery takes about 1,000.
inline constexpr std::size_t record_bytes_max = 48UL * 1024 * 1024;
// Values of one JSON text. A delivery has 19. A value takes up to 100 bytes once it is parsed, however few it has in
// the text.
inline constexpr std::size_t json_values_max = 1'500'000;
// Entries of one timeline, and processes and queries of one scenario. Each entry is looked for among the deliveries.
inline constexpr std::size_t timeline_entries_max = 1'000;
// Reviews of one record, and bytes of what each says.
inline constexpr std::size_t reviews_max = 20;
inline constexpr std::size_t reviewer_bytes_max = 255;
inline constexpr std::size_t review_note_bytes_max = 4096;

} // namespace onced::rehearsal
