// main.cpp: the example's stages and threads; README.md beside it draws them.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <marey/marey.h>

#include "bounded_queue.h"
#include "corpus.h"
#include "document.h"
#include "renderer.h"
#include "search_index.h"
#include "text_analysis.h"

namespace {

constexpr std::uint32_t kWorkers = 3;
constexpr std::uint32_t kBlock = 32;      // documents
constexpr std::uint32_t kFollowed = 100;  // one in this many documents is followed through the threads
constexpr std::uint32_t kQueries = 2500;
constexpr std::uint32_t kPictureSide = 512;

/// Runs `work(i)` for i in 0 .. count - 1 on the workers; each takes the next number until there is none.
template <class Work>
void for_each_on_workers(const char* phase, std::uint32_t count, Work work) {
    MAREY_RANGE("run phase", "phase", phase, "count", count);
    std::atomic<std::uint32_t> next = 0;
    std::vector<std::thread> workers;
    for (std::uint32_t i = 0; i < kWorkers; ++i) {
        workers.emplace_back([&, i] {
            marey::thread_name(std::string(phase) + " worker " + std::to_string(i + 1));
            for (std::uint32_t item = next++; item < count; item = next++) work(item);
        });
    }
    MAREY_RANGE("wait for workers");
    for (std::thread& worker : workers) worker.join();
}

void parse_blocks(BoundedQueue<std::string>& blocks, BoundedQueue<Document>& documents,
                  std::uint32_t& malformed) {
    marey::thread_name("parser");
    while (auto block = blocks.pop()) {
        MAREY_RANGE("handle block");
        for (Document& document : parse_block(*block, malformed)) {
            if (document.id % kFollowed == 0) {
                document.in_flight = marey::Range("document in flight", "document", document.id);
            }
            documents.push(std::move(document));
        }
        marey::instant("block parsed", "bytes", block->size());
    }
    documents.close();
}

void index_documents(std::uint32_t number, BoundedQueue<Document>& documents, SearchIndex& index,
                     std::vector<std::string>& titles) {
    marey::thread_name("index worker " + std::to_string(number));
    while (auto document = documents.pop()) {
        MAREY_RANGE("index document", "document", document->id);
        index.add(document->id, analyse(*document));
        titles[document->id] = std::move(document->title);
        document->in_flight.end();
    }
}

/// Reader, parser and index workers, all at once. Returns the number of malformed documents.
std::uint32_t build_index(const Vocabulary& vocabulary, std::uint32_t count, SearchIndex& index,
                          std::vector<std::string>& titles) {
    MAREY_FUNCTION("documents", count);
    std::uint32_t malformed = 0;
    BoundedQueue<std::string> blocks("blocks waiting", 8);
    BoundedQueue<Document> documents("documents waiting", 64);
    std::thread parser([&] { parse_blocks(blocks, documents, malformed); });
    std::vector<std::thread> workers;
    for (std::uint32_t i = 0; i < kWorkers; ++i) {
        workers.emplace_back([&, i] { index_documents(i + 1, documents, index, titles); });
    }
    for (std::uint32_t first = 0; first < count; first += kBlock) {
        blocks.push(make_block(vocabulary, first, std::min(kBlock, count - first)));
    }
    blocks.close();
    MAREY_RANGE("wait for workers");
    parser.join();
    for (std::thread& worker : workers) worker.join();
    return malformed;
}

std::vector<QueryResult> answer_queries(const Vocabulary& vocabulary, const SearchIndex& index) {
    MAREY_FUNCTION();
    std::vector<QueryResult> results(kQueries);
    for_each_on_workers("query", kQueries, [&](std::uint32_t number) {
        MAREY_RANGE("query", "number", number);
        Random random(500'000 + number);
        QueryResult& result = results[number];
        std::vector<std::string> terms;
        for (std::uint32_t words = 2 + random.below(4); words > 0; --words) {
            std::string word = vocabulary.draw(random);
            if (random.below(10) == 0)
                word[random.below(static_cast<std::uint32_t>(word.size()))] = 'x';  // a misprint
            result.text += (result.text.empty() ? "" : " ") + word;
            stem(word);
            terms.push_back(index.nearest_term(word));
        }
        result.hits = index.search(terms, 5);
    });
    return results;
}

Picture draw_picture(const SearchIndex& index, std::uint32_t documents) {
    MAREY_FUNCTION();
    Picture picture(kPictureSide);
    std::vector<const Signature*>
        shown;  // topic by topic, so that likeness shows as squares along the diagonal
    for (std::uint32_t i = 0; i < kPictureSide; ++i) {
        const std::uint32_t topic = i * 12 / kPictureSide;
        shown.push_back(&index.signatures()[(topic + 12 * (i % 64)) % documents]);
    }
    for_each_on_workers("draw", picture.tiles(), [&](std::uint32_t tile) { picture.draw_tile(tile, shown); });
    return picture;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string output = argc > 1 ? argv[1] : "";
    const int wanted = argc > 2 ? std::atoi(argv[2]) : 5000;
    if (wanted < 1 || wanted > 1'000'000) {
        std::fprintf(stderr, "usage: pipeline [report.html] [documents]\n");
        return 2;
    }
    const auto documents = static_cast<std::uint32_t>(wanted);
    marey::thread_name("main");
    MAREY_RANGE("main");

    const Vocabulary vocabulary(20'000);
    SearchIndex index(documents);
    std::vector<std::string> titles(documents);
    const std::uint32_t malformed = build_index(vocabulary, documents, index, titles);
    const std::vector<QueryResult> results = answer_queries(vocabulary, index);
    const Picture picture = draw_picture(index, documents);
    const std::string page = render_page(picture, std::span(results).first(100), titles);
    if (!output.empty()) {
        MAREY_RANGE("write report", "file", output, "bytes", page.size());
        std::ofstream(output) << page;
    }

    std::size_t hits = 0;
    for (const QueryResult& result : results) hits += result.hits.size();
    std::printf("%u documents (%u malformed), %zu terms, %u queries with %zu hits, picture %016llx\n",
                documents, malformed, index.term_count(), kQueries, hits,
                static_cast<unsigned long long>(picture.checksum()));
    return 0;
}
