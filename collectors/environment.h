// Facts about the process for the report: versions, switches, thread counts, attention packages, what is registered with Transformers.
#pragma once

namespace attntrace {

// At start: what PyTorch itself says. No GIL needed.
void RecordTorchEnvironment(const char* torch_version, const char* torch_library) noexcept;

// Whether Python modules were loaded or registrations changed since the last look; cheap, called at new variants. Takes the GIL
// where this thread may; never call with a lock of ours held.
void RefreshEnvironment() noexcept;

}  // namespace attntrace
