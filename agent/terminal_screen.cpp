#include "agent/terminal_screen.hpp"

#include "agent/terminal_text.hpp"

namespace tensorplay::agent {

void TerminalScreen::wipe(std::string& out) {
  if (!is_drawn_) return;
  out += "\r\x1b[K";
  is_drawn_ = false;
}

void TerminalScreen::draw(std::string& out) {
  if (in_place_.empty()) return;
  // One column stays free: a full last column makes some terminals wrap.
  const int room = width_ > 1 ? width_ - 1 : 1;
  const std::string& text = in_place_.begin()->second;
  const std::size_t others = in_place_.size() - 1;
  if (others == 0) {
    out += cut_to_columns(text, room);
  } else {
    const std::string more = " (+" + std::to_string(others) + ")";
    const int left = room - static_cast<int>(more.size());
    out += cut_to_columns(text, left > 0 ? left : 0);
    out += more;
  }
  is_drawn_ = true;
}

void TerminalScreen::lines(int owner, std::string_view text, std::string& out) {
  in_place_.erase(owner);
  wipe(out);
  out += text;
  draw(out);
}

void TerminalScreen::raw(std::string_view text, std::string& out) {
  wipe(out);
  out += text;
  if (!text.empty() && text.back() == '\n') draw(out);
}

void TerminalScreen::in_place(int owner, std::string_view text, std::string& out) {
  if (text.empty()) {
    if (in_place_.erase(owner) == 0) return;
  } else {
    in_place_[owner] = text;
  }
  wipe(out);
  draw(out);
}

}  // namespace tensorplay::agent
