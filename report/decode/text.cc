#include "report/decode/text.h"

#include <cstdint>

namespace attntrace {
namespace {

// Length of the well-formed sequence at the front, 0 where there is none: no overlong form, no surrogate, nothing over
// U+10FFFF.
size_t SequenceLength(absl::string_view s) {
  const auto byte = [&](size_t i) { return i < s.size() ? static_cast<uint8_t>(s[i]) : uint8_t{0}; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const uint8_t lead = byte(0), second = byte(1);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string CleanUtf8(absl::string_view bytes) {
  std::string clean;
  clean.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t length = SequenceLength(bytes);
    if (length > 0) {
      clean.append(bytes.data(), length);
    } else {
      clean.append("\xEF\xBF\xBD");
    }
    bytes.remove_prefix(length > 0 ? length : 1);
  }
  return clean;
}

}  // namespace attntrace
