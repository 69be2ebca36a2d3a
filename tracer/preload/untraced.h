// Saying that a process which has PyTorch in it runs untraced: a file in the spool folder for the report, and one line on
// standard error, once for the whole job.
//
// Any thread; plain system calls. Without a spool folder both keep silent: the job that wanted the trace is over.
#pragma once

namespace attntrace::preload {

// `topic` tells lines of one job apart (the agent's folder name): each is printed by the first process that comes to it.
// `next` is what the reader can do about it, or empty.
void SayUntraced(const char* topic, const char* reason, const char* next) noexcept;

// The file alone, for what no user needs to be told while the program runs.
void RecordUntraced(const char* reason) noexcept;

}  // namespace attntrace::preload
