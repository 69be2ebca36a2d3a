// What is said in the report about CUPTI itself: its version, why it refused, who holds it.
#pragma once

#include <cstddef>

namespace attntrace {

void RecordCuptiVersion() noexcept;  // once
void NoteHolder() noexcept;
void DescribeRefusal(int result, char* text, size_t size) noexcept;

}  // namespace attntrace
