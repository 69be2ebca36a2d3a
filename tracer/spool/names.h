// Names that the launcher, the preload and the agent agree on. Every environment variable and every file name of ours is here.
#pragma once

namespace attntrace::names {

// Environment of a traced process, set by the launcher.
inline constexpr char kSpoolDirectory[] = "ATTNTRACE_SPOOL_DIR";  // where spools go; unset: the preload does nothing at all
inline constexpr char kAgentDirectory[] = "ATTNTRACE_AGENT_DIR";  // folder with one sub-folder per PyTorch version
inline constexpr char kOptions[] = "ATTNTRACE_OPTIONS";           // key=value:key=value, see tracer/options.h
inline constexpr char kLibcupti[] = "ATTNTRACE_LIBCUPTI";         // a libcupti to use in place of the one that is mapped

// Files.
inline constexpr char kPreloadLibrary[] = "libattntrace_preload.so";
inline constexpr char kAgentLibrary[] = "libattntrace_agent.so";
// Sub-folder of kAgentDirectory: torch-<version without the local part>, with "-oldabi" where libc10 has the old C++ ABI.
inline constexpr char kAgentFolderPrefix[] = "torch-";
inline constexpr char kOldAbiSuffix[] = "-oldabi";
// Beside the agent: what runs reference calls on that PyTorch.
inline constexpr char kReferenceProgram[] = "attntrace-reference";
inline constexpr char kInlineReference[] = "libattntrace_reference_inline.so";
inline constexpr char kFlexReference[] = "flex_reference.py";
inline constexpr char kReferenceMemory[] = "libattntrace_reference_memory.so";

inline constexpr char kSpoolSuffix[] = ".spool";        // <pid>-<start ticks>-<n>.spool
inline constexpr char kUntracedSuffix[] = ".untraced";  // <pid>.untraced: one line, why a process with libtorch has no agent
inline constexpr char kSaidSuffix[] = ".said";          // <agent folder>.said: empty; some process has printed the line about it
inline constexpr char kRunFile[] = "run.json";          // the launcher's own facts: argv, start, pid, exit; see tracer/run_record.h
inline constexpr char kSpoolFolderSuffix[] = ".attntrace.d";  // <report stem>.attntrace.d, removed once the report is written
inline constexpr char kReportSuffix[] = ".attn";

}  // namespace attntrace::names
