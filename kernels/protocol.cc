#include "kernels/protocol.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

namespace attntrace::reference {
namespace {

#define ATTNTRACE_CHANGE_INFO(enumerator, name, alters, text) {Change::enumerator, name, alters, text},
constexpr ChangeInfo kChanges[] = {ATTNTRACE_REFERENCE_CHANGES(ATTNTRACE_CHANGE_INFO)};
#undef ATTNTRACE_CHANGE_INFO

std::string Escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == '%' || byte == '=' || byte >= 127) {
      char code[4];
      std::snprintf(code, sizeof code, "%%%02X", byte);
      out += code;
    } else {
      out += c;
    }
  }
  return out;
}

std::string Unescape(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::strtol(text.substr(i + 1, 2).c_str(), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::string> Split(const std::string& text, char by) {
  std::vector<std::string> parts;
  size_t start = 0;
  for (size_t at; (at = text.find(by, start)) != std::string::npos; start = at + 1)
    parts.push_back(text.substr(start, at - start));
  parts.push_back(text.substr(start));
  return parts;
}

std::string Number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

bool ReadNumber(const std::string& text, double* value) {
  char* end = nullptr;
  *value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == 0;
}

bool ReadNumber(const std::string& text, int64_t* value) {
  char* end = nullptr;
  *value = std::strtoll(text.c_str(), &end, 10);
  return !text.empty() && *end == 0;
}

std::string Text(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

bool ReadNumbers(const std::string& text, std::vector<int64_t>* numbers) {
  numbers->clear();
  if (text.empty()) return true;
  for (const std::string& part : Split(text, ',')) {
    int64_t number = 0;
    if (!ReadNumber(part, &number)) return false;
    numbers->push_back(number);
  }
  return true;
}

std::string Text(const TensorSpec& tensor) {
  return Text(tensor.sizes) + "/" + Text(tensor.strides) + "/" + tensor.dtype + "/" + (tensor.requires_grad ? "g" : "-");
}

bool ReadTensor(const std::string& text, TensorSpec* tensor) {
  const std::vector<std::string> parts = Split(text, '/');
  if (parts.size() != 4 || !ReadNumbers(parts[0], &tensor->sizes) || !ReadNumbers(parts[1], &tensor->strides)) return false;
  tensor->dtype = parts[2];
  tensor->requires_grad = parts[3] == "g";
  return tensor->sizes.size() == tensor->strides.size();
}

// A key's writer and reader in one place, so that they cannot part.
class Fields {
 public:
  std::function<bool(const std::string&)>& Read(const char* key) { return readers_[key]; }
  bool ReadAll(const std::string& line, std::string* why) const {
    for (const std::string& word : Split(line, ' ')) {
      const size_t equals = word.find('=');
      const auto reader = readers_.find(word.substr(0, equals));
      if (equals == std::string::npos || reader == readers_.end() || !reader->second(Unescape(word.substr(equals + 1)))) {
        *why = "cannot read \"" + word + "\"";
        return false;
      }
    }
    return true;
  }

 private:
  std::map<std::string, std::function<bool(const std::string&)>> readers_;
};

template <typename T>
std::function<bool(const std::string&)> Whole(T* to) {
  return [to](const std::string& text) {
    int64_t value = 0;
    if (!ReadNumber(text, &value)) return false;
    *to = static_cast<T>(value);
    return true;
  };
}
std::function<bool(const std::string&)> Word(std::string* to) {
  return [to](const std::string& text) { return *to = text, true; };
}
std::function<bool(const std::string&)> Real(std::optional<double>* to) {
  return [to](const std::string& text) { return ReadNumber(text, &to->emplace()); };
}

}  // namespace

const ChangeInfo* FindChange(const std::string& name) {
  for (const ChangeInfo& change : kChanges) {
    if (name == change.name) return &change;
  }
  return nullptr;
}

const char* NameOf(Change change) {
  for (const ChangeInfo& known : kChanges) {
    if (known.change == change) return known.name;
  }
  return "";
}

std::string Encode(const Request& request) {
  std::string changes;
  for (const std::string& change : request.changes) changes += (changes.empty() ? "" : ",") + change;
  std::string line = "id=" + std::to_string(request.id) + " path=" + Escape(request.path) + " changes=" + Escape(changes) +
                     " device=" + Escape(request.device) + " q=" + Escape(Text(request.q)) + " k=" + Escape(Text(request.k)) +
                     " v=" + Escape(Text(request.v));
  if (request.mask) line += " mask=" + Escape(Text(*request.mask));
  line += " content=" + Escape(request.mask_content);
  if (request.scale) line += " scale=" + Number(*request.scale);
  return line + " dropout=" + Number(request.dropout) + " causal=" + std::to_string(request.causal) +
         " gqa=" + std::to_string(request.gqa) + " backward=" + std::to_string(request.backward) +
         " check=" + std::to_string(request.check) + " limit_ms=" + std::to_string(request.limit_ms);
}

bool Decode(const std::string& line, Request* request, std::string* why) {
  Fields fields;
  fields.Read("id") = Whole(&request->id);
  fields.Read("path") = Word(&request->path);
  fields.Read("changes") = [request](const std::string& text) {
    request->changes = text.empty() ? std::vector<std::string>() : Split(text, ',');
    return true;
  };
  fields.Read("device") = Word(&request->device);
  fields.Read("q") = [request](const std::string& text) { return ReadTensor(text, &request->q); };
  fields.Read("k") = [request](const std::string& text) { return ReadTensor(text, &request->k); };
  fields.Read("v") = [request](const std::string& text) { return ReadTensor(text, &request->v); };
  fields.Read("mask") = [request](const std::string& text) { return ReadTensor(text, &request->mask.emplace()); };
  fields.Read("content") = Word(&request->mask_content);
  fields.Read("scale") = Real(&request->scale);
  fields.Read("dropout") = [request](const std::string& text) { return ReadNumber(text, &request->dropout); };
  fields.Read("causal") = Whole(&request->causal);
  fields.Read("gqa") = Whole(&request->gqa);
  fields.Read("backward") = Whole(&request->backward);
  fields.Read("check") = Whole(&request->check);
  fields.Read("limit_ms") = Whole(&request->limit_ms);
  return fields.ReadAll(line, why);
}

std::string Encode(const Response& response) {
  std::string line =
      "id=" + std::to_string(response.id) + " status=" + Escape(response.status) + " words=" + Escape(response.words) +
      " backend=" + Escape(response.backend) + " forward_peak=" + std::to_string(response.forward_peak_bytes) +
      " backward_peak=" + std::to_string(response.backward_peak_bytes) +
      " total_peak=" + std::to_string(response.total_peak_bytes) + " kept=" + std::to_string(response.kept_bytes) +
      " workspace=" + std::to_string(response.workspace_bytes) + " forward_ns=" + std::to_string(response.forward_ns) +
      " backward_ns=" + std::to_string(response.backward_ns) + " repeats=" + std::to_string(response.repeats);
  if (response.max_difference) line += " difference=" + Number(*response.max_difference);
  return line;
}

bool Decode(const std::string& line, Response* response, std::string* why) {
  Fields fields;
  fields.Read("id") = Whole(&response->id);
  fields.Read("status") = Word(&response->status);
  fields.Read("words") = Word(&response->words);
  fields.Read("backend") = Word(&response->backend);
  fields.Read("forward_peak") = Whole(&response->forward_peak_bytes);
  fields.Read("backward_peak") = Whole(&response->backward_peak_bytes);
  fields.Read("total_peak") = Whole(&response->total_peak_bytes);
  fields.Read("kept") = Whole(&response->kept_bytes);
  fields.Read("workspace") = Whole(&response->workspace_bytes);
  fields.Read("forward_ns") = Whole(&response->forward_ns);
  fields.Read("backward_ns") = Whole(&response->backward_ns);
  fields.Read("repeats") = Whole(&response->repeats);
  fields.Read("difference") = Real(&response->max_difference);
  return fields.ReadAll(line, why);
}

}  // namespace attntrace::reference
