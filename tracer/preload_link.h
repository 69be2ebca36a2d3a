// A path of the preload library that LD_PRELOAD can name.
#pragma once

#include <string>

namespace attntrace {

// The library's own path, or, where that has a blank or a colon in it, a symbolic link below $TMPDIR that lives as long as
// this object does.
class PreloadLink {
 public:
  explicit PreloadLink(const std::string& library);
  ~PreloadLink();
  PreloadLink(const PreloadLink&) = delete;
  PreloadLink& operator=(const PreloadLink&) = delete;

  const std::string& path() const { return path_; }    // empty: there is none
  const std::string& error() const { return error_; }  // then the reason

 private:
  std::string path_, folder_, error_;
};

}  // namespace attntrace
