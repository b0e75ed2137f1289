/// A report must fit into one message of the store's (8 MiB), whatever the workers of a large node have written.
#pragma once

#include "rendezvous/messages.hpp"

#include <cstddef>

namespace tensorplay::rendezvous {

/// The report's text, at most `limit` bytes long: where it would be longer, tracebacks, messages and last lines of the
/// workers lose their middles, all by the same measure, until it fits.
std::string encode_within(Report report, std::size_t limit = 7 << 20);

}  // namespace tensorplay::rendezvous
