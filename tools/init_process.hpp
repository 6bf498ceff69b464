#pragma once

namespace onced::tools {

// Where this process is the first of its PID namespace (a container without --init), the kernel gives it every orphan,
// and keeps default actions of signals from it. Then the command goes on in a child, and this process passes signals on
// to it, waits for all orphans, and ends as the child does. Returns in the process that is to run the command. To be
// called by the only thread.
void leave_first_process() noexcept;

} // namespace onced::tools
