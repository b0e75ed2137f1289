/// A worker that does nothing but write lines, one write(2) each: what the output benchmark and the log tests run.
///
///     line_writer LINES [BYTES_PER_LINE [FD]]
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>

int main(int argc, char** argv) {
  const long lines = argc > 1 ? std::atol(argv[1]) : 1000;
  const std::size_t length = argc > 2 ? static_cast<std::size_t>(std::atol(argv[2])) : 80;
  const int fd = argc > 3 ? std::atoi(argv[3]) : 1;
  std::string line(length < 16 ? 16 : length, '.');
  line.back() = '\n';
  for (long i = 0; i < lines; ++i) {
    // The number in front tells a reader which lines are missing.
    std::to_chars(line.data(), line.data() + 14, i);
    for (std::size_t done = 0; done < line.size();) {
      const ssize_t written = ::write(fd, line.data() + done, line.size() - done);
      if (written < 0) {
        std::perror("line_writer");
        return 1;
      }
      done += static_cast<std::size_t>(written);
    }
  }
  return 0;
}
