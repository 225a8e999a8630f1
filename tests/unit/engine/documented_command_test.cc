// The pages of docs/commands for strings, keys and transactions: their examples give the replies
// that they show, and they name every command of their families.
#include <catch2/catch.hpp>

#include <cctype>
#include <fstream>
#include <sstream>

#include "tests/support/engine_fixture.h"
#include "tests/support/source_dir.h"

namespace hotkv {
namespace {

std::string ReadPage(const std::string& name) {
  std::ifstream in(SourcePath("docs/commands/" + name));
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// As redis-cli prints it.
std::string Print(const RespValue& value, const std::string& indent) {
  switch (value.type) {
    case RespType::kNull:
      return "(nil)\n";
    case RespType::kError:
      return "(error) " + value.text + "\n";
    case RespType::kInteger: {
      std::string text("(integer) ");
      return text.append(std::to_string(value.integer)).append("\n");
    }
    case RespType::kBulk:
      return "\"" + value.text + "\"\n";
    case RespType::kArray:
      break;
    default:
      return value.text + "\n";
  }
  std::string text;
  for (size_t i = 0; i < value.items.size(); ++i) {
    std::string number = std::to_string(i + 1);
    number.append(") ");
    if (i > 0) text.append(indent);
    text.append(number).append(Print(value.items[i], indent + std::string(number.size(), ' ')));
  }
  return text.empty() ? "(empty array)\n" : text;
}

std::string RunAndPrint(EngineFixture& db, std::string_view line) {
  db(line);
  RespReplyParser parser;
  parser.Feed(db.raw());
  return Print(**parser.Next(), "");
}

TEST_CASE("examples of the command pages give what they show") {
  for (const char* page : {"strings.md", "keys.md", "transactions.md"}) {
    std::istringstream text(ReadPage(page));
    EngineFixture db;
    std::string line;
    std::string expected;
    std::string got;
    int examples = 0;
    while (std::getline(text, line)) {
      const bool is_call = line.compare(0, 2, "> ") == 0;
      if (is_call || line == "```") {
        INFO(page);
        CHECK(got == expected);
        got.clear();
        expected.clear();
      }
      if (is_call) {
        ++examples;
        got = RunAndPrint(db, line.substr(2));
        expected.clear();
      } else if (!got.empty()) {
        expected += line + "\n";
      }
    }
    CHECK(examples > 5);
  }
}

TEST_CASE("the command pages name every command of their families") {
  const std::string pages =
      ReadPage("strings.md") + ReadPage("keys.md") + ReadPage("transactions.md");
  for (const auto family : {StringCommands(), GenericCommands(), TransactionCommands()}) {
    for (const CommandSpec& spec : family) {
      std::string name(spec.name);
      for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      const size_t at = pages.find(name);
      INFO(name);
      REQUIRE(at != std::string::npos);
      const auto is_letter = [&](size_t place) {
        return place < pages.size() && std::isupper(static_cast<unsigned char>(pages[place])) != 0;
      };
      bool whole = false;
      for (size_t i = at; i != std::string::npos && !whole; i = pages.find(name, i + 1)) {
        whole = !is_letter(i + name.size()) && (i == 0 || !is_letter(i - 1));
      }
      CHECK(whole);
    }
  }
}

}  // namespace
}  // namespace hotkv
