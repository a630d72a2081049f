#include <arenite/plan/csv.hpp>
#include <arenite/plan/solve.hpp>
#include <arenite/plan/verify.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "src/plan/testing.hpp"

namespace arenite::plan {
namespace {

TEST(Csv, ReadsTheUsualColumns) {
  const Problem problem = read_csv("id,lower,upper,size\nx,0,3,4096\ny,-3,5,8589934592\n", "t");
  ASSERT_EQ(problem.size(), 2u);
  EXPECT_EQ(problem[0].name, "x");
  EXPECT_EQ(problem[0].lifetime, (Lifetime{0, 3}));
  EXPECT_EQ(problem[0].alignment, 1);
  EXPECT_EQ(problem[1].lifetime, (Lifetime{-3, 5}));
  EXPECT_EQ(problem[1].bytes, std::int64_t{1} << 33);
}

TEST(Csv, ReadsAnyColumnsInAnyOrder) {
  const Problem problem = read_csv(
      "\xef\xbb\xbfnote,size, end ,lower,id,offset,alignment,space\r\n"
      "\"a, \"\"b\"\"\",10,4,4,\"one, two\",,,\r\n"
      "\n"
      ",20 , 9,5,z, 64,32,cuda:1/device\n",
      "t", 16);
  ASSERT_EQ(problem.size(), 2u);
  EXPECT_EQ(problem[0].name, "one, two");
  EXPECT_EQ(problem[0].lifetime, (Lifetime{4, 5})) << "the end is inclusive";
  EXPECT_EQ(problem[0].alignment, 16);
  EXPECT_FALSE(problem[0].offset);
  EXPECT_EQ(problem[1].alignment, 32);
  EXPECT_EQ(problem[1].offset, 64);
  EXPECT_EQ(to_string(problem[1].space), "cuda:1/device");
}

TEST(Csv, NoRowsAreNoBuffers) { EXPECT_EQ(read_csv("id,lower,upper,size\n", "t").size(), 0u); }

TEST(Csv, WritesTheSameRowsWithOffsets) {
  const std::string text = "size,id,lower,upper\n30,\"b,\",0,2\r\n\n10,a,1,3\n30,c,2,4";
  const Problem problem = read_csv(text, "t");
  const Plan plan = solve(problem);
  const std::string written = write_csv(text, "t", plan);
  EXPECT_EQ(written, "size,id,lower,upper,offset\n30,\"b,\",0,2,0\n10,a,1,3,30\n30,c,2,4,0\n");
  // As a problem it has one plan only; written once more it is the same.
  const Problem fixed = read_csv(written, "t");
  EXPECT_EQ(fixed[1].offset, 30);
  verify(fixed, solve(fixed));
  EXPECT_EQ(write_csv(written, "t", plan), written);
}

TEST(Csv, SaysWhatIsWrongAndWhere) {
  const auto header = [](const std::string& text) { read_csv(text, "t"); };
  EXPECT_ERROR("t: no header; expected a first line such as 'id,lower,upper,size'", header("\n "));
  EXPECT_ERROR("t, line 1, column 1: no column 'size'; expected the columns id, lower, upper (or",
               header("id,lower,upper,bytes\n"));
  EXPECT_ERROR("line 1, column 1: the columns 'upper' and 'end'; expected one of 'upper'",
               header("id,lower,upper,end,size"));
  EXPECT_ERROR("line 1, column 1: no column 'upper' or 'end'", header("id,lower,size"));
  EXPECT_ERROR("size (hint: commas stand between columns, no semicolons)",
               header("id;lower;upper;size"));
  EXPECT_ERROR("size (hint: commas stand between columns, no tabs)",
               header("id\tlower\tupper\tsize"));
  EXPECT_ERROR("(hint: without a decimal point)",
               read_csv("id,lower,upper,size\na,0,2,64.0\n", "t"));
  EXPECT_ERROR("line 1, column 5: a second column 'id'; expected each name once", header("id, id"));

  const auto rows = [](const std::string& text) { read_csv("id,lower,upper,size\n" + text, "t"); };
  EXPECT_ERROR("t, line 3, column 6: 3 fields; expected 4, as in the header",
               rows("a,0,1,2\nb,0, 3\n"));
  EXPECT_ERROR("line 2, column 7: size '-1'; expected a whole number of 0 to", rows("a,0,1,-1"));
  EXPECT_ERROR("line 2, column 7: size 'nan'", rows("a,0,1,nan"));
  EXPECT_ERROR("line 2, column 7: size '1e3'", rows("a,0,1,1e3"));
  EXPECT_ERROR("line 2, column 7: size ''", rows("a,0,1,"));
  EXPECT_ERROR("line 2, column 7: size '9223372036854775808'", rows("a,0,1,9223372036854775808"));
  EXPECT_ERROR("line 2, column 3: lower '0x1'", rows("a,0x1,2,3"));
  EXPECT_ERROR("line 2, column 5: the lifetime [3, 3); expected an upper above the lower",
               rows("a,3,3,1"));
  EXPECT_ERROR("line 2, column 5: the lifetime [3, 2)", rows("a,3,2,1"));
  EXPECT_ERROR("line 3, column 1: the name of buffer 0 again; expected a unique name",
               rows("a,0,1,2\na,1,2,3"));
  EXPECT_ERROR("line 2, column 1: a quote that is not closed", rows("\"a,0,1,2\n\"b,0,1,2"));
  EXPECT_ERROR("line 2, column 4: 'x' after a quoted field; expected a comma",
               rows("\"a\"x,0,1,2"));
  EXPECT_ERROR("sizes", rows("a,0,1,1152921504606846976\nb,0,1,1152921504606846976"));
  EXPECT_ERROR("line 2, column 9: alignment '0'",
               read_csv("id,lower,upper,size,alignment\na,0,1,2,0", "t"));
  EXPECT_ERROR("power of two", read_csv("id,lower,upper,size,alignment\na,0,1,2,3", "t"));
  EXPECT_ERROR("line 2, column 9: space 'gpu'; expected a space such as 'cpu:0/host'",
               read_csv("id,lower,upper,size,space\na,0,1,2,gpu", "t"));
  EXPECT_ERROR("line 2, column 7: a lifetime from 3 to 2; expected an end of at least the lower",
               read_csv("id,size,lower,end\na,1,3,2", "t"));
}

TEST(Csv, WritesPlansThatCameFromNoTable) {
  const Space device{.device = DeviceKind::cuda, .memory = MemoryKind::device};
  Problem problem;
  problem.add({.name = "a, \"b\" #1", .bytes = 100, .lifetime = {-3, 3}});
  problem.add({.name = " c", .bytes = 0, .lifetime = {1, 2}, .alignment = 1, .space = device});
  Problem late;
  late.add({.name = "a\nb", .bytes = 100, .lifetime = {0, 3}});

  const Plan plan = solve(problem);
  const std::string table = write_csv(plan);
  EXPECT_EQ(table,
            "id,lower,upper,size,alignment,space,offset\n"
            "\"a, \"\"b\"\" #1\",-3,3,100,256,cpu:0/host,0\n"
            "\" c\",1,2,0,1,cuda:0/device,0\n");
  const Problem again = read_csv(table, "t");
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].offset, 0);
  EXPECT_EQ(again[0].alignment, 256);
  EXPECT_EQ(again[1].name, " c");
  EXPECT_EQ(again[1].space, device);
  EXPECT_ERROR("the line break in the name or alias of 'a?b'; expected one line",
               write_csv(solve(late)));
}

TEST(Csv, KeepsAByteOrderMarkThatIsPartOfAName) {
  Problem problem;
  problem.add({.name = "\xef\xbb\xbfsize", .bytes = 10, .lifetime = {0, 1}});
  const std::string text = "\xef\xbb\xbf\xef\xbb\xbfsize,id,lower,upper,size\n1,a,0,1,10\n";

  const std::string table = write_csv(text, "t", solve(read_csv(text, "t")));

  EXPECT_EQ(table, "\"\xef\xbb\xbfsize\",id,lower,upper,size,offset\n1,a,0,1,10,0\n");
  EXPECT_EQ(read_csv(table, "t").size(), 1u);
  EXPECT_EQ(read_csv(write_csv(solve(problem)), "t")[0].name, "\xef\xbb\xbfsize");
}

TEST(Csv, SurvivesAnyText) {
  std::mt19937 random(5);
  const std::string good =
      "id,lower,end,size,offset,space\n\"a\",0,3,10,,\nb,1,2,7,16,cpu:0/host\n";
  for (int round = 0; round < fewer_where_slow(20000); ++round) {
    std::string text = good;
    for (std::int64_t edits = 1 + below(random, 4); edits > 0; --edits) {
      const auto at =
          static_cast<std::size_t>(below(random, static_cast<std::int64_t>(text.size())));
      switch (below(random, 3)) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + static_cast<std::size_t>(below(random, 5)));
          break;
        default:
          text.insert(at, 1, ",\"\n0-a"[below(random, 6)]);
          break;
      }
      if (text.empty()) text = ",";
    }
    try {
      const Problem problem = read_csv(text, "t");
      const Plan plan = solve(problem, {.effort = Effort::fast});
      verify(problem, plan);
      const std::string written = write_csv(text, "t", plan);
      EXPECT_EQ(read_csv(written, "t").size(), problem.size());
    } catch (const Error&) {  // nothing else may come out
    }
  }
}

}  // namespace
}  // namespace arenite::plan
