#include "agent/hosts/relay_wire.hpp"

#include <nlohmann/json.hpp>

#include <stdexcept>

namespace tensorplay::agent {
namespace {

constexpr std::string_view kGreeting = "\001tprun-relay 1\n";
constexpr std::size_t kHeader = 5;
constexpr std::size_t kMostPayload = 16U << 20U;
constexpr std::size_t kLongLine = 64U << 10U;

/// JSON holds text, while words and variables may hold any bytes: each byte travels as the code point of its value.
std::string to_text(std::string_view bytes) {
  std::string text;
  for (const char letter : bytes) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x80) {
      text += letter;
    } else {
      text += static_cast<char>(0xc0 | byte >> 6);
      text += static_cast<char>(0x80 | (byte & 0x3f));
    }
  }
  return text;
}

std::string to_bytes(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      bytes += text[i];
    } else if (i + 1 < text.size()) {
      bytes += static_cast<char>((lead & 0x03) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f));
    }
  }
  return bytes;
}

std::vector<std::string> to_texts(const std::vector<std::string>& all) {
  std::vector<std::string> out;
  for (const std::string& bytes : all) out.push_back(to_text(bytes));
  return out;
}

std::vector<std::string> all_bytes(const nlohmann::json& list) {
  std::vector<std::string> out;
  for (const auto& text : list) out.push_back(to_bytes(text.get<std::string>()));
  return out;
}

}  // namespace

std::string format_assignment(const Assignment& assignment) {
  const nlohmann::json out{{"members", assignment.members},
                           {"names", assignment.names},
                           {"member_values", assignment.member_values},
                           {"program", to_text(assignment.program)},
                           {"words", to_texts(assignment.words)},
                           {"environment", to_texts(assignment.environment)},
                           {"folder", to_text(assignment.folder)},
                           {"ssh", to_text(assignment.ssh)}};
  return out.dump() + '\n';
}

Assignment parse_assignment(std::string_view line) {
  try {
    const auto in = nlohmann::json::parse(line);
    Assignment assignment;
    in.at("members").get_to(assignment.members);
    in.at("names").get_to(assignment.names);
    in.at("member_values").get_to(assignment.member_values);
    assignment.program = to_bytes(in.at("program").get<std::string>());
    assignment.words = all_bytes(in.at("words"));
    assignment.environment = all_bytes(in.at("environment"));
    assignment.folder = to_bytes(in.at("folder").get<std::string>());
    assignment.ssh = to_bytes(in.at("ssh").get<std::string>());
    const std::size_t count = assignment.members.size();
    if (count == 0 || assignment.names.size() != count || assignment.member_values.size() != count) {
      throw std::runtime_error("members and names do not fit");
    }
    return assignment;
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("an assignment that tprun did not write: ") + error.what());
  }
}

Assignment part_of(const Assignment& whole, const std::vector<std::size_t>& positions) {
  Assignment part = whole;
  part.members.clear();
  part.names.clear();
  part.member_values.clear();
  for (const std::size_t at : positions) {
    part.members.push_back(whole.members.at(at));
    part.names.push_back(whole.names.at(at));
    part.member_values.push_back(whole.member_values.at(at));
  }
  return part;
}

std::pair<std::size_t, std::string> parse_member_news(const std::string& text) {
  const auto blank = text.find(' ');
  return {std::stoul(text.substr(0, blank)), blank == std::string::npos ? "" : text.substr(blank + 1)};
}

std::string greeting_of_relay() {
  return std::string(kGreeting);
}

std::string format_frame(FrameKind kind, std::string_view text) {
  std::string out(1, static_cast<char>(kind));
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((text.size() >> shift) & 0xff);
  return out.append(text);
}

std::optional<Frame> FrameReader::take() {
  if (!has_greeted_) {
    const auto at = bytes_.find(kGreeting);
    if (at == std::string::npos) {
      // A greeting may be under way in the last bytes; the rest is a login shell's.
      if (bytes_.size() > kGreeting.size()) bytes_.erase(0, bytes_.size() - kGreeting.size());
      return std::nullopt;
    }
    bytes_.erase(0, at + kGreeting.size());
    has_greeted_ = true;
  }
  if (bytes_.size() < kHeader) return std::nullopt;
  std::size_t size = 0;
  for (std::size_t i = 1; i < kHeader; ++i) size = size << 8U | static_cast<unsigned char>(bytes_[i]);
  const char kind = bytes_[0];
  if (size > kMostPayload || std::string_view("oexl").find(kind) == std::string_view::npos) {
    throw std::runtime_error("what came back is not tprun's");
  }
  if (bytes_.size() < kHeader + size) return std::nullopt;
  Frame frame{static_cast<FrameKind>(kind), bytes_.substr(kHeader, size)};
  bytes_.erase(0, kHeader + size);
  return frame;
}

std::string LineJoiner::feed(std::string_view bytes) {
  rest_ += bytes;
  const auto end = rest_.rfind('\n');
  if (end == std::string::npos && rest_.size() < kLongLine) return "";
  const std::size_t length = end == std::string::npos ? rest_.size() : end + 1;
  std::string lines = rest_.substr(0, length);
  rest_.erase(0, length);
  return lines;
}

std::string LineJoiner::finish() {
  if (rest_.empty()) return "";
  return std::exchange(rest_, "") + '\n';
}

}  // namespace tensorplay::agent
