// http_request_fuzzer.cpp: any bytes as requests: to the parser, and as questions about a trace to the
// handler.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <marey/error.h>

#include "analyze/trace_fixture.h"
#include "serve/api.h"
#include "serve/server.h"

namespace {

constexpr const char* kFuzzSecret = "0123456789abcdef0123456789abcdef";

marey::Trace fuzzed_trace() {
    marey::TraceFixture fixture;
    fixture.thread("main", {{"main", 0, 100, {{"read", 10, 20}, {"zero", 40, 0}, {"read", 50, 50}}}});
    fixture.instant("tick", 5).counter("size", 7, 1.5).thread("worker", {{"</script>", -50, 500}});
    fixture.data().links = {{0, 1, marey::LinkKind::Flow, 0}, {1, 99, marey::LinkKind::Launch, 0}};
    return fixture.window(0, 200).trace();
}

const marey::serve::Api& fuzzed_api() {
    static const marey::serve::Api api({{"trace", fuzzed_trace}}, {"/nonexistent"}, kFuzzSecret);
    return api;
}

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "check failed: %s\n", what);
    std::abort();
}

/// Answers a head as the server does.
void answer(const std::string& head) {
    marey::serve::HttpRequest request;
    marey::serve::Response response;
    bool is_answered = false;
    try {
        request = marey::serve::parse_request(head);
        response = fuzzed_api().handle(request);
        is_answered = true;
    } catch (const marey::serve::RequestError& error) {
        response = marey::serve::error_response(error.status(), error.what());
    }
    if (is_answered && request.path.starts_with("/api/"))
        require(request.token == kFuzzSecret, "data needs the token");
    const std::string bytes = marey::serve::response_bytes(request, response);
    require(bytes.starts_with("HTTP/1.1 "), "an answer is HTTP");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzzed_api().handle_own("/api/outline");  // waits for the trace once
    const std::string input(reinterpret_cast<const char*>(data), size);
    if (const std::size_t bytes = marey::serve::request_bytes(input); bytes > 0)
        answer(input.substr(0, bytes));
    if (input.find_first_of("\r\n ") == input.npos && size < marey::serve::kMaxRequestBytes)
        answer("GET /api/" + input + " HTTP/1.1\r\nHost: localhost\r\nMarey-Token: " + kFuzzSecret +
               "\r\n\r\n");
    return 0;
}
