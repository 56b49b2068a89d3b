// host_clocks_test.cpp: the clocks of hosts: exact lines, honest bounds, contradictions, paths.
#include <marey/host_clocks.h>

#include <gtest/gtest.h>

#include "collect/clocks/clock_lines.h"
#include "collect/clocks/clock_simulation_fixture.h"

namespace marey {
namespace {

TEST(ClockLines, FindsTheLineWithTheWidestMargin) {
    // Upper bounds on y = 10 + x / 10000 and lower bounds 8 below it, one of each touching it nowhere else.
    std::vector<LineBound> upper, lower;
    for (int i = 0; i <= 10; ++i) {
        const double x = i * 1e5, far = i % 5 == 0 ? 0 : 50;
        upper.push_back({x, 14 + x / 1e4 + far});
        lower.push_back({x, 6 + x / 1e4 - far});
    }
    const ClockLines lines(upper, lower);
    ASSERT_TRUE(lines.is_feasible());
    EXPECT_NEAR(lines.rate(), 1e-4, 1e-12);
    EXPECT_NEAR(lines.offset(), 10, 1e-6);
    EXPECT_NEAR(lines.violation(), -4, 1e-6);
    EXPECT_NEAR(lines.highest_at(0), 14, 1e-6);
    EXPECT_NEAR(lines.lowest_at(1e6), 106, 1e-6);
    // The steepest line touches the lower bound at the start and the upper bound at the end.
    EXPECT_NEAR(lines.highest_rate(), 1e-4 + 8 / 1e6, 1e-12);
    EXPECT_NEAR(lines.highest_at(2e6), 14 + 200 + 8, 1e-6);
}

TEST(ClockLines, KeepTheRateNearZeroWhereNothingDeterminesIt) {
    const std::vector<LineBound> upper = {{0, 100}}, lower = {{50'000, 0}};
    const ClockLines lines(upper, lower);
    ASSERT_TRUE(lines.is_feasible());
    EXPECT_EQ(lines.rate(), 0);
    EXPECT_EQ(lines.offset(), 50);
    EXPECT_EQ(lines.highest_rate(), kMaxClockRate);
}

TEST(ClockLines, SayWhenNoLineFits) {
    const std::vector<LineBound> upper = {{0, 0}, {1e6, 0}}, lower = {{0, -5}, {5e5, 10}, {1e6, -5}};
    const ClockLines lines(upper, lower);
    EXPECT_FALSE(lines.is_feasible());
    EXPECT_NEAR(lines.violation(), 5, 1e-9);
    EXPECT_FALSE(ClockLines(upper, {}).is_feasible());
}

struct Job {
    std::vector<SimulatedClock> clocks;
    std::vector<WallClock> walls;
    std::vector<ClockEvidence> evidence;

    void add_hosts(std::size_t count, double wander, double seconds, std::mt19937_64& random) {
        std::uniform_real_distribution<double> offset(-1e17, 1e17), rate(-50e-6, 50e-6);
        for (std::size_t i = 0; i < count; ++i)
            clocks.emplace_back(std::floor(offset(random)), rate(random), wander, seconds, random);
        walls.resize(count);
    }
    /// The error of a host's clock, and whether the bound covers it.
    bool is_covered(const HostClocks& fit, std::uint32_t host, double seconds,
                    double* error = nullptr) const {
        const std::int64_t at = clocks[host].ns(seconds);
        const std::int64_t off =
            std::abs(fit.hosts[host].to_reference(at) - clocks[fit.reference].ns(seconds));
        if (error != nullptr) *error = static_cast<double>(off);
        const std::int64_t bound = fit.hosts[host].error_at(at);
        return bound == kUnknownClockError || off <= bound + 2;  // times of the simulation are whole too
    }
};

/// A job with random hosts, links, bursts, messages and collectives.
Job random_job(std::uint64_t seed, double wander, double seconds) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> part(0, 1);
    Job job;
    const auto hosts = static_cast<std::uint32_t>(2 + random() % 5);
    job.add_hosts(hosts, wander, seconds, random);
    const double fastest = std::pow(10, -5.7 + 2 * part(random));  // 2 us to 200 us
    std::vector<SimulatedLink> links(hosts * hosts);
    for (SimulatedLink& link : links) link.fastest_s = fastest * (1 + part(random));
    for (std::uint32_t host = 1; host < hosts; ++host) {
        // Most hosts speak with the first, some only with the one before them.
        const std::uint32_t other = random() % 4 == 0 ? host - 1 : 0;
        const int bursts = 1 + static_cast<int>(random() % 6), size = 1 + static_cast<int>(random() % 8);
        for (int i = 0; i < bursts; ++i)
            add_burst(job.evidence, host, other, job.clocks, links[host * hosts + other],
                      links[other * hosts + host], part(random) * seconds, size, random);
        for (std::uint64_t i = random() % 50; i-- != 0;) {
            const bool there = random() % 2 == 0;
            const std::uint32_t from = there ? host : other, to = there ? other : host;
            const double sent = part(random) * seconds;
            const double received = sent + links[from * hosts + to].delay(random);
            job.evidence.push_back({from, to, job.clocks[from].ns(sent), job.clocks[to].ns(received),
                                    ClockEvidenceKind::Message});
        }
    }
    for (std::uint64_t i = random() % 20; i-- != 0;) {
        const double begin = part(random) * seconds;
        std::vector<double> enter(hosts);
        for (double& at : enter) at = begin + part(random) * 1e-3;
        const double last = *std::max_element(enter.begin(), enter.end());
        for (std::uint32_t a = 0; a < hosts; ++a) {
            for (std::uint32_t b = 0; b < hosts; ++b) {
                if (a == b) continue;
                const double left = last + fastest * (1 + part(random));
                job.evidence.push_back({a, b, job.clocks[a].ns(enter[a]), job.clocks[b].ns(left),
                                        ClockEvidenceKind::Collective});
            }
        }
    }
    return job;
}

TEST(HostClocks, BoundsAlwaysHoldTheTruthWhenRatesAreConstant) {
    constexpr int kJobs = 10'000;
    std::size_t bounded = 0, points = 0;
    for (int seed = 0; seed < kJobs; ++seed) {
        std::mt19937_64 random(static_cast<std::uint64_t>(seed) + 1'000'000);
        const double seconds = std::pow(10, 0.5 + 2.5 * static_cast<double>(random() % 1000) / 1000);
        const Job job = random_job(static_cast<std::uint64_t>(seed), 0, seconds);
        const HostClocks fit = fit_host_clocks(job.walls, job.evidence);
        ASSERT_TRUE(std::none_of(fit.problems.begin(), fit.problems.end(), [](const ProblemInfo& problem) {
            return problem.code == "clock_contradiction";
        })) << seed;
        for (std::uint32_t host = 0; host < fit.hosts.size(); ++host) {
            for (const double part : {0.0, 0.1, 0.37, 0.5, 0.81, 1.0}) {
                ++points;
                ASSERT_TRUE(job.is_covered(fit, host, part * seconds)) << seed << " host " << host;
                bounded +=
                    fit.hosts[host].error_at(job.clocks[host].ns(part * seconds)) != kUnknownClockError;
            }
        }
    }
    EXPECT_EQ(bounded, points);  // every host has an exchange, so none is unknown
}

TEST(HostClocks, BoundsHoldTheTruthWhenRatesWander) {
    std::size_t covered = 0, points = 0;
    for (std::uint64_t seed = 0; seed < 2'000; ++seed) {
        std::mt19937_64 random(seed + 77);
        const double seconds = 100 + static_cast<double>(random() % 900);
        Job job = random_job(seed, 0.01e-6, seconds);
        // Bursts every 30 s, as marey.torch makes them.
        for (std::uint32_t host = 1; host < job.clocks.size(); ++host)
            for (double at = 0; at < seconds; at += 30)
                add_burst(job.evidence, host, 0, job.clocks, {}, {}, at, 8, random);
        const HostClocks fit = fit_host_clocks(job.walls, job.evidence);
        for (std::uint32_t host = 0; host < fit.hosts.size(); ++host) {
            for (double at = 0; at < seconds; at += seconds / 16) {
                ++points;
                covered += job.is_covered(fit, host, at);
            }
        }
    }
    EXPECT_GE(static_cast<double>(covered), 0.999 * static_cast<double>(points));
}

TEST(HostClocks, BoundIsHalfTheRoundTripOfTheFastestExchange) {
    std::mt19937_64 random(5);
    Job job;
    job.add_hosts(2, 0, 600, random);
    for (double at = 0; at <= 600; at += 30) add_burst(job.evidence, 1, 0, job.clocks, {}, {}, at, 8, random);
    const HostClocks fit = fit_host_clocks(job.walls, job.evidence);
    const HostClock& clock = fit.hosts[fit.reference == 0 ? 1 : 0];
    EXPECT_EQ(clock.method, "exchange");
    EXPECT_EQ(clock.evidence[0], 21u * 8 * 2);
    // The fastest round trip of a burst is seldom the fastest of the link, 50 us.
    EXPECT_LT(clock.error_ns, 50'000 / 2 * 1.3);
    EXPECT_LT(std::abs(clock.rate), 100e-6);
}

TEST(HostClocks, AForgedExchangeIsLeftOutAndReported) {
    std::mt19937_64 random(6);
    Job job;
    job.add_hosts(2, 0.01e-6, 300, random);
    for (double at = 0; at <= 300; at += 30) add_burst(job.evidence, 1, 0, job.clocks, {}, {}, at, 8, random);
    const std::int64_t sent = job.clocks[1].ns(100), arrived = job.clocks[0].ns(100) + 5'000'000;
    add_clock_exchange(job.evidence, 1, 0, sent, arrived, arrived + 10, sent + 60'000);
    const HostClocks fit = fit_host_clocks(job.walls, job.evidence);
    for (double at = 0; at <= 300; at += 1) EXPECT_TRUE(job.is_covered(fit, 1, at)) << at;
    EXPECT_LT(fit.hosts[1].error_ns == 0 ? fit.hosts[0].error_ns : fit.hosts[1].error_ns, 60'000);
    ASSERT_EQ(fit.problems.size(), 1u);
    EXPECT_EQ(fit.problems[0].code, "clock_contradiction");
    EXPECT_LE(fit.problems[0].count, 2u);
}

/// `good` bursts, then `forged` ones that agree with each other: the answers are 5 ms late on their clock.
Job forged_job(int good, int forged) {
    std::mt19937_64 random(16);
    Job job;
    job.add_hosts(2, 0, 60, random);
    for (int i = 0; i < good; ++i) add_burst(job.evidence, 1, 0, job.clocks, {}, {}, 10 + i * 0.1, 8, random);
    std::vector<ClockEvidence> wrong;
    for (int i = 0; i < forged; ++i) add_burst(wrong, 1, 0, job.clocks, {}, {}, 10.05 + i * 0.1, 8, random);
    for (ClockEvidence& fact : wrong) {
        (fact.earlier_host == 0 ? fact.earlier_ns : fact.later_ns) += 5'000'000;
        job.evidence.push_back(fact);
    }
    return job;
}

TEST(HostClocks, WhereTooFewExchangesAgreeTheErrorCoversBoth) {
    for (const auto& [good, forged] : {std::pair(1, 1), std::pair(1, 2), std::pair(2, 1), std::pair(1, 3)}) {
        SCOPED_TRACE(std::to_string(good) + " good, " + std::to_string(forged) + " forged");
        const Job job = forged_job(good, forged);
        const HostClocks fit = fit_host_clocks(job.walls, job.evidence);
        for (double at = 9; at <= 12; at += 0.1)
            EXPECT_TRUE(job.is_covered(fit, 1 - fit.reference, at)) << at;
        EXPECT_GT(fit.hosts[1 - fit.reference].error_ns, 4'900'000);
        ASSERT_EQ(fit.problems.size(), 1u);
        EXPECT_EQ(fit.problems[0].code, "clock_contradiction");
        EXPECT_NE(fit.problems[0].text.find("too few agree to tell which are wrong"), std::string::npos);
    }
}

TEST(HostClocks, BoundsHoldTheTruthUnlessMostExchangesAreForged) {
    int uncertain = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        std::mt19937_64 random(seed);
        const auto number = [&](int from, int to) {
            return from + static_cast<int>(random() % (to - from + 1));
        };
        std::uniform_real_distribution<double> time(10, 13);
        Job job;
        job.add_hosts(2, 0, 20, random);
        const int good = number(1, 6), forged = number(1, 3 * good), size = number(1, 3);
        const std::int64_t late_ns = (number(0, 1) == 0 ? 1 : -1) * number(4, 20) * 1'000'000;
        for (int i = 0; i < good + forged; ++i) {
            const std::size_t first = job.evidence.size();
            add_burst(job.evidence, 1, 0, job.clocks, {}, {}, time(random), size, random);
            for (std::size_t k = first; k < job.evidence.size() && i >= good; ++k) {
                ClockEvidence& fact = job.evidence[k];
                (fact.earlier_host == 0 ? fact.earlier_ns : fact.later_ns) += late_ns;
            }
        }
        const HostClocks fit = fit_host_clocks(job.walls, job.evidence);
        for (double at = 10; at <= 13; at += 0.25)
            ASSERT_TRUE(job.is_covered(fit, 1 - fit.reference, at)) << seed << " at " << at;
        ASSERT_FALSE(fit.problems.empty()) << seed;
        const bool is_uncertain = fit.problems[0].text.find("too few agree") != std::string::npos;
        uncertain += is_uncertain;
        EXPECT_FALSE(good > 3 * forged && is_uncertain) << seed;
    }
    EXPECT_GT(uncertain, 100);
}

TEST(HostClocks, AClearMajorityOfExchangesIsRight) {
    const Job job = forged_job(5, 1);
    const std::string names[] = {"alpha", "beta"};
    const HostClocks fit = fit_host_clocks(job.walls, job.evidence, names);
    for (double at = 9; at <= 12; at += 0.1) EXPECT_TRUE(job.is_covered(fit, 1 - fit.reference, at)) << at;
    EXPECT_LT(fit.hosts[1 - fit.reference].error_at(job.clocks[1 - fit.reference].ns(10.2)), 60'000);
    ASSERT_EQ(fit.problems.size(), 1u);
    const std::string& text = fit.problems[0].text;
    EXPECT_NE(text.find("left out: alpha and beta: 8 of 96 from exchanges (at "), std::string::npos) << text;
    EXPECT_EQ(text.find("too few"), std::string::npos);
}

TEST(HostClocks, WallClocksTellWhichExchangesAreForged) {
    Job job = forged_job(1, 2);
    for (std::uint32_t host = 0; host < 2; ++host)
        job.walls[host] = {job.clocks[host].ns(10), -job.clocks[host].ns(10), 400'000};
    const HostClocks fit = fit_host_clocks(job.walls, job.evidence);
    for (double at = 9; at <= 12; at += 0.1) EXPECT_TRUE(job.is_covered(fit, 1 - fit.reference, at)) << at;
    const HostClock& clock = fit.hosts[1 - fit.reference];
    EXPECT_EQ(clock.method, "exchange");
    EXPECT_LT(clock.error_ns, 300'000);                             // one burst says little about the rate
    EXPECT_EQ(evidence_text(clock), "16 exchanges, 1 wall clock");  // one fact of each forged one is harmless
    ASSERT_EQ(fit.problems.size(), 1u);
    EXPECT_NE(fit.problems[0].text.find(": 16 of 48 from exchanges (at "), std::string::npos)
        << fit.problems[0].text;
}

TEST(HostClocks, WallClocksRelateHostsThatNothingElseDoes) {
    std::mt19937_64 random(17);
    Job job;
    job.add_hosts(5, 0, 60, random);
    add_burst(job.evidence, 1, 0, job.clocks, {}, {}, 10, 8, random);
    add_burst(job.evidence, 3, 2, job.clocks, {}, {}, 10, 8, random);
    const std::int64_t errors[] = {300'000, 200'000, 5'000'000, 100'000, kUnknownClockError};
    for (std::uint32_t host = 0; host < 5; ++host) {  // each is wrong by half of what its kernel states
        const std::int64_t wrong = errors[host] == kUnknownClockError ? 0 : errors[host] / 2;
        job.walls[host] = {job.clocks[host].ns(10), 50'000'000 - job.clocks[host].ns(10) + wrong,
                           errors[host]};
    }
    const HostClocks fit = fit_host_clocks(job.walls, job.evidence);
    for (std::uint32_t host = 0; host < 4; ++host) EXPECT_TRUE(job.is_covered(fit, host, 10)) << host;
    EXPECT_EQ(fit.hosts[fit.reference == 0 ? 1 : 0].method, "exchange");
    EXPECT_EQ(fit.hosts[3].method, "wall_clock");
    EXPECT_EQ(fit.hosts[2].method, "wall_clock");  // the weakest part of its path
    EXPECT_LT(fit.hosts[2].error_at(job.clocks[2].ns(10)), 500'000);
    EXPECT_EQ(fit.hosts[4].method, "none");
    ASSERT_EQ(fit.problems.size(), 1u);
    EXPECT_EQ(fit.problems[0].code, "clock_unknown");
    EXPECT_EQ(fit.problems[0].count, 1u);
}

TEST(HostClocks, CollectivesThatContradictExchangesAreNotTrusted) {
    std::mt19937_64 random(7);
    Job job;
    job.add_hosts(2, 0, 60, random);
    for (double at = 0; at <= 60; at += 30) add_burst(job.evidence, 1, 0, job.clocks, {}, {}, at, 8, random);
    // Calls that return before the others have entered: the recorded ranges are not the collective.
    for (double at = 1; at < 60; at += 0.5) {
        job.evidence.push_back(
            {0, 1, job.clocks[0].ns(at + 0.01), job.clocks[1].ns(at), ClockEvidenceKind::Collective});
    }
    const HostClocks fit = fit_host_clocks(job.walls, job.evidence);
    for (double at = 0; at <= 60; at += 0.7) EXPECT_TRUE(job.is_covered(fit, 1, at)) << at;
    const HostClock& clock = fit.hosts[fit.reference == 0 ? 1 : 0];
    EXPECT_EQ(clock.method, "exchange");
    EXPECT_EQ(clock.evidence[2], 0u);
    ASSERT_EQ(fit.problems.size(), 1u);
    EXPECT_EQ(fit.problems[0].count, 118u);
}

TEST(HostClocks, ARankThatIsAlwaysLateWidensTheBoundOfCollectives) {
    std::mt19937_64 random(8);
    Job job;
    job.add_hosts(2, 0, 60, random);
    for (double at = 0; at < 60; at += 0.2) {
        const double late = at + 1e-3, left = late + 20e-6;
        job.evidence.push_back(
            {0, 1, job.clocks[0].ns(at), job.clocks[1].ns(left), ClockEvidenceKind::Collective});
        job.evidence.push_back(
            {1, 0, job.clocks[1].ns(late), job.clocks[0].ns(left), ClockEvidenceKind::Collective});
    }
    const HostClocks fit = fit_host_clocks(job.walls, job.evidence);
    EXPECT_EQ(fit.hosts[1 - fit.reference].method, "collective");
    EXPECT_GT(fit.hosts[1 - fit.reference].error_ns, 500'000);
    for (double at = 0; at < 60; at += 1) EXPECT_TRUE(job.is_covered(fit, 1, at)) << at;
}

TEST(HostClocks, ErrorsAddUpAlongThePath) {
    std::mt19937_64 random(9);
    Job job;
    job.add_hosts(4, 0, 60, random);
    for (std::uint32_t host = 1; host < 4; ++host)
        for (double at = 0; at <= 60; at += 30)
            add_burst(job.evidence, host, host - 1, job.clocks, {}, {}, at, 8, random);
    const HostClocks fit = fit_host_clocks(job.walls, job.evidence);
    EXPECT_TRUE(fit.reference == 1 || fit.reference == 2);
    const std::uint32_t far = fit.reference == 1 ? 3 : 0, between = fit.reference == 1 ? 2 : 1;
    EXPECT_GT(fit.hosts[far].error_ns, fit.hosts[between].error_ns + 20'000);
    for (std::uint32_t host = 0; host < 4; ++host)
        for (double at = 0; at <= 60; at += 1) EXPECT_TRUE(job.is_covered(fit, host, at));
}

TEST(HostClocks, AHostWithoutAnyPathIsPlacedByItsWallClockWithoutABound) {
    Job job;
    job.walls = {{1000, 500, 10}, {2000, 700, kUnknownClockError}, {0, 0, kUnknownClockError}};
    add_clock_exchange(job.evidence, 0, 2, 0, 100, 110, 30);
    const HostClocks fit = fit_host_clocks(job.walls, job.evidence);
    EXPECT_EQ(fit.reference, 0u);
    EXPECT_EQ(fit.hosts[1].method, "none");
    EXPECT_EQ(fit.hosts[1].error_at(2000), kUnknownClockError);
    EXPECT_EQ(fit.hosts[1].to_reference(2000), 2200);
    ASSERT_EQ(fit.problems.size(), 1u);
    EXPECT_EQ(fit.problems[0].code, "clock_unknown");
}

TEST(HostClocks, WallClocksCountOnlyWithTheErrorThatTheirKernelsState) {
    std::vector<ClockEvidence> evidence;
    add_wall_clocks(evidence, 0, {1000, 50, 30}, 1, {7000, 20, kUnknownClockError});
    EXPECT_TRUE(evidence.empty());
    add_wall_clocks(evidence, 0, {1000, 50, 30}, 1, {7000, 20, 40});
    const HostClocks fit = fit_host_clocks(std::vector<WallClock>(2), evidence);
    EXPECT_EQ(fit.hosts[1].method, "wall_clock");
    EXPECT_NEAR(static_cast<double>(fit.hosts[1].to_reference(1030)), 1000, 1);
    EXPECT_NEAR(static_cast<double>(fit.hosts[1].error_at(1030)), 70, 2);
}

TEST(HostClocks, RatesThatWanderMoreThanTheLinksAllowShortenTheWindows) {
    std::mt19937_64 random(10);
    Job job;
    job.add_hosts(2, 0.1e-6, 600, random);
    for (double at = 0; at <= 600; at += 5)
        add_burst(job.evidence, 1, 0, job.clocks, {1e-6}, {1e-6}, at, 8, random);
    const HostClocks fit = fit_host_clocks(job.walls, job.evidence);
    EXPECT_TRUE(fit.problems.empty());
    EXPECT_LT(fit.hosts[1 - fit.reference].error_ns, 20'000);
}

TEST(HostClocks, SurviveAnyNumbers) {
    std::mt19937_64 random(11);
    const auto number = [&] {
        const std::int64_t choices[] = {0,
                                        1,
                                        std::numeric_limits<std::int64_t>::max(),
                                        std::numeric_limits<std::int64_t>::min(),
                                        std::int64_t{1} << 60,
                                        static_cast<std::int64_t>(random()),
                                        static_cast<std::int64_t>(random() % 1'000'000)};
        return choices[random() % std::size(choices)];
    };
    for (int i = 0; i < 2'000; ++i) {
        std::vector<ClockEvidence> evidence;
        for (std::uint64_t n = random() % 40; n-- != 0;) {
            evidence.push_back({static_cast<std::uint32_t>(random() % 5),
                                static_cast<std::uint32_t>(random() % 5), number(), number(),
                                static_cast<ClockEvidenceKind>(random() % kClockEvidenceKinds)});
        }
        std::vector<WallClock> walls(random() % 4);
        for (WallClock& wall : walls) wall = {number() / 4, number() / 4, kUnknownClockError};
        const HostClocks fit = fit_host_clocks(walls, evidence);
        for (const HostClock& clock : fit.hosts) {
            ASSERT_FALSE(clock.knots.empty());
            EXPECT_GE(clock.error_at(number() / 8), 0);
        }
    }
}

}  // namespace
}  // namespace marey
