// explain.cpp: findings about C++ programs that record themselves.
#include <gtest/gtest.h>

#include <time.h>

#include <string>

#include <marey/findings.h>
#include <marey/marey.h>
#include <marey/session.h>

namespace {

void spin(std::int64_t ns) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    const std::int64_t end = now.tv_sec * 1'000'000'000 + now.tv_nsec + ns;
    do {
        ::clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec * 1'000'000'000 + now.tv_nsec < end);
}

std::vector<marey::Finding> findings_of(const auto& program) {
    marey::Session session(marey::SessionOptions{});
    program();
    return marey::explain(session.stop());
}

std::string first_id(const std::vector<marey::Finding>& findings) {
    return findings.empty() ? "" : findings.front().id;
}

void parse() {
    MAREY_RANGE("parse");
    spin(300'000);
}
void index() {
    MAREY_RANGE("index");
    spin(300'000);
}
void render() {
    MAREY_RANGE("render");
    spin(300'000);
}
void write() {
    MAREY_RANGE("write");
    spin(300'000);
}

void check() {
    MAREY_RANGE("check");
    spin(300'000);
}

TEST(Explain, SaysNothingAboutAPipelineWithEvenStages) {
    const std::vector<marey::Finding> findings = findings_of([] {
        for (int document = 0; document < 200; ++document) {
            MAREY_RANGE("document");
            parse();
            index();
            render();
            write();
            check();
        }
    });
    EXPECT_EQ(first_id(findings), "");
}

TEST(Explain, FindsALookupThatIsCalledForEachElement) {
    const std::vector<marey::Finding> findings = findings_of([] {
        for (int call = 0; call < 30'000; ++call) {
            MAREY_RANGE("lookup");
            for (int i = 0; i < 100; ++i) {
                [[maybe_unused]] const volatile int kept = i;
            }
        }
    });
    ASSERT_EQ(first_id(findings), "calls.tiny");
    EXPECT_EQ(findings.front().evidence[0].count, 30'000);
}

TEST(Explain, FindsTheTimeBetweenSteps) {
    const std::vector<marey::Finding> findings = findings_of([] {
        for (int step = 0; step < 30; ++step) {
            {
                MAREY_RANGE_SCOPE(marey::Scope::Step, "step");
                parse();
                index();
            }
            MAREY_RANGE("read_batch");
            spin(2'000'000);
        }
    });
    ASSERT_EQ(first_id(findings), "step.between");
    EXPECT_NE(findings.front().evidence[2].text.find("read_batch"), std::string::npos);
}

TEST(Explain, FindsAConfigurationThatIsReadAgainAndAgain) {
    const std::vector<marey::Finding> findings = findings_of([] {
        for (int request = 0; request < 40; ++request) {
            MAREY_RANGE("request");
            {
                MAREY_RANGE("read_configuration", "path", "app.toml");
                spin(500'000);
            }
            parse();
        }
    });
    ASSERT_EQ(first_id(findings), "calls.repeated");
    EXPECT_EQ(findings.front().evidence[0].text, "path=app.toml");
}

}  // namespace
