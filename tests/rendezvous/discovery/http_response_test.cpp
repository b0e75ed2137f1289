#include "rendezvous/discovery/http_response.hpp"

#include "tests/support/catch.hpp"

using tensorplay::rendezvous::HttpResponse;

namespace {

/// The response after these bytes, in pieces of `size`, and the end of the connection.
HttpResponse read(std::string_view bytes, std::size_t size) {
  HttpResponse response;
  for (std::size_t i = 0; i < bytes.size(); i += size) response.receive(bytes.substr(i, size));
  return response;
}

std::string text(const HttpResponse& response) {
  if (!response.error().empty()) return "error: " + response.error();
  return std::to_string(response.status()) + " " + response.body() + (response.is_complete() ? "" : " ...");
}

}  // namespace

TEST_CASE("a response is the same in whatever pieces it comes") {
  struct Row {
    std::string bytes, expected;
  };
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  for (const auto& [bytes, expected] : {
           Row{ok + "Content-Length: 2\r\n\r\n{}", "200 {}"},
           Row{ok + "content-LENGTH:0\r\n\r\n", "200 "},
           Row{"HTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: 2\r\n\r\n{}", "200 {}"},
           Row{ok + "Transfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4;x=y\r\n\": 1\r\n1\r\n}\r\n0\r\nT: x\r\n\r\n",
               "200 {\"a\": 1}"},
           Row{ok + "Transfer-Encoding: chunked\r\n\r\n4\r\nline\r\n", "200 line ..."},
           Row{"HTTP/1.0 503 Busy\n\nlater", "503 later ..."},
           Row{"SSH-2.0-OpenSSH\r\n", "error: it is no HTTP server"},
           Row{"HTTP/1.1 999 What\r\n", "error: it is no HTTP server"},
           Row{ok + "no colon\r\n", "error: a header has no colon"},
           Row{ok + "Content-Length: -1\r\n\r\n", "error: its answer has an odd length"},
           Row{ok + "Content-Length: 99999999999\r\n\r\n", "error: its answer has an odd length"},
           Row{ok + "Transfer-Encoding: gzip\r\n\r\n", "error: its answer is encoded as gzip"},
           Row{ok + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", "error: a chunk has an odd size"},
           Row{ok + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "error: a chunk is longer than it said"},
       }) {
    INFO(bytes);
    CHECK(text(read(bytes, bytes.size())) == expected);
    CHECK(text(read(bytes, 1)) == expected);
    CHECK(text(read(bytes, 7)) == expected);
  }
}

TEST_CASE("a response without a length ends with its connection, others must not") {
  auto open = read("HTTP/1.1 200 OK\r\n\r\nbody", 100);
  open.peer_closed();
  CHECK(text(open) == "200 body");
  auto cut = read("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbody", 100);
  cut.peer_closed();
  CHECK(text(cut) == "error: the connection ended before the answer did");
}

TEST_CASE("a response that never ends costs bounded memory") {
  HttpResponse head;
  const std::string line = "X: " + std::string(1000, 'y');
  head.receive("HTTP/1.1 200 OK\r\n");
  for (int i = 0; i < 1000 && head.error().empty(); ++i) head.receive(line + "\r\n");
  CHECK(head.error() == "its head is too long");
  HttpResponse endless_line;
  for (int i = 0; i < 1000 && endless_line.error().empty(); ++i) endless_line.receive(line);
  CHECK(endless_line.error() == "its head is too long");
  HttpResponse body;
  body.receive("HTTP/1.1 200 OK\r\n\r\n");
  for (int i = 0; i < 2000 && body.error().empty(); ++i) body.receive(line);
  CHECK(body.error() == "its answer is too long");
}
