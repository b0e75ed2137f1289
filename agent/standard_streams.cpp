#include "agent/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace tensorplay::agent {

void hold_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    // The lowest free number is the one that is missing, as those below it are open by now.
    (void)!::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
  }
}

}  // namespace tensorplay::agent
