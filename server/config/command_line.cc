// Reads the configuration file and the command line into Settings.

#include <glob.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "server/config/config.h"
#include "server/version.h"

namespace hotkv {

namespace {

constexpr int kIncludeDepthMax = 16;

// Directives of redis.conf that are no settings and cannot be left out silently.
constexpr std::string_view kRefused[] = {"rename-command", "loadmodule", "user"};
// Settings of modules that Redis bundles and HotKV does not offer; redis-full.conf has them.
constexpr std::string_view kModulePrefixes[] = {"search-", "ts-", "bf-", "cf-"};

bool IsHex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return std::tolower(static_cast<unsigned char>(c)) - 'a' + 10;
}

std::string Quoted(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : " \"") + words[i] + (i == 0 ? "" : "\"");
  return text;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

Status Fatal(const std::string& where, const std::string& line, const std::string& why) {
  return Status::InvalidArgument("\n*** FATAL CONFIG FILE ERROR (HotKV " +
                                 std::string(kHotkvVersion) + ") ***\n" + where + "\n>>> '" + line +
                                 "'\n" + why);
}

class Loader {
 public:
  explicit Loader(StartOptions* options) : options_(options) {}

  Status LoadFile(const std::string& path, int depth);
  Status LoadText(const std::string& text, const std::string& name, int depth);
  Status Apply(const std::vector<std::string>& words, const std::string& where,
               const std::string& line);

 private:
  Status Include(const std::string& pattern, const std::string& where, const std::string& line,
                 int depth);
  Status ApplySave(size_t index, std::vector<std::string> words);

  StartOptions* const options_;
  bool save_seen_ = false;
  std::set<std::string> accepted_seen_;
};

Result<std::string> ReadText(const std::string& path) {
  const bool standard_input = path == "-";
  std::FILE* file = standard_input ? stdin : std::fopen(path.c_str(), "r");
  if (file == nullptr) {
    return Status::FromErrno(errno, "Fatal error, can't open config file", path);
  }
  std::string text;
  char buffer[4096];
  for (size_t got = 0; (got = std::fread(buffer, 1, sizeof(buffer), file)) > 0;)
    text.append(buffer, got);
  const bool failed = std::ferror(file) != 0;
  if (!standard_input) std::fclose(file);
  if (failed) return Status::FromErrno(EIO, "Fatal error, can't read config file", path);
  return text;
}

Status Loader::LoadFile(const std::string& path, int depth) {
  HOTKV_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return LoadText(text, path, depth);
}

Status Loader::LoadText(const std::string& text, const std::string& name, int depth) {
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0)
      line.pop_back();
    line.erase(0, std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty() || line[0] == '#') continue;
    const std::string where = "Reading the configuration file " +
                              (name == "-" ? "from stdin" : "'" + name + "'") + ", at line " +
                              std::to_string(number);
    const auto words = SplitConfigLine(line);
    if (!words) return Fatal(where, line, "Unbalanced quotes in configuration line");
    if (words->empty()) continue;
    if (Lower((*words)[0]) == "include" && words->size() == 2) {
      HOTKV_RETURN_IF_ERROR(Include((*words)[1], where, line, depth + 1));
    } else {
      HOTKV_RETURN_IF_ERROR(Apply(*words, where, line));
    }
  }
  return Status::Ok();
}

Status Loader::Include(const std::string& pattern, const std::string& where,
                       const std::string& line, int depth) {
  if (depth > kIncludeDepthMax) return Fatal(where, line, "Too many nested includes");
  if (pattern.find_first_of("*?[") == std::string::npos) {
    const Status status = LoadFile(pattern, depth);
    const bool missing = !status.ok() && status.sys_errno() != 0;
    return missing ? Fatal(where, line, status.message() + ": " + pattern) : status;
  }
  glob_t found{};
  Status status;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc && status.ok(); ++i)
      status = LoadFile(found.gl_pathv[i], depth);
  }
  globfree(&found);
  return status;
}

// Lines add up, but the first one of a file replaces the built-in save points.
Status Loader::ApplySave(size_t index, std::vector<std::string> words) {
  const bool none = words.size() == 1 && words[0].empty();
  if (save_seen_ && !none) {
    const std::vector<std::string> before = options_->settings.Words(Setting::kSave);
    words.insert(words.begin(), before.begin(), before.end());
  }
  save_seen_ = true;
  return options_->settings.Set(index, words);
}

Status Loader::Apply(const std::vector<std::string>& words, const std::string& where,
                     const std::string& line) {
  const std::string name = Lower(words[0]);
  for (const std::string_view refused : kRefused) {
    if (name == refused) return Fatal(where, line, "HotKV does not offer this directive");
  }
  const int index = FindSetting(name);
  if (index < 0) {
    for (const std::string_view prefix : kModulePrefixes) {
      if (!name.starts_with(prefix)) continue;
      if (accepted_seen_.insert(name).second) options_->accepted.push_back(name);
      return Status::Ok();
    }
    return Fatal(where, line, "Bad directive or wrong number of arguments");
  }
  const auto at = static_cast<size_t>(index);
  const std::vector<std::string> values(words.begin() + 1, words.end());
  if (values.empty()) return Fatal(where, line, "wrong number of arguments");
  const bool is_save = AllSettings()[at].type == SettingType::kSave;
  const Status status = is_save ? ApplySave(at, values) : options_->settings.Set(at, values);
  if (!status.ok()) return Fatal(where, line, status.message());
  if (AllSettings()[at].Has(setting_flag::kAccepted) && accepted_seen_.insert(name).second) {
    options_->accepted.push_back(name);
  }
  return Status::Ok();
}

struct Flag {
  std::vector<std::string> words;  // name, values
};

// "--name value ..." and "--name=value" up to the next word that begins with "--".
std::vector<Flag> GroupFlags(std::span<const std::string> args) {
  std::vector<Flag> flags;
  for (const std::string& arg : args) {
    if (arg.starts_with("--") && arg.size() > 2) {
      const size_t equals = arg.find('=');
      flags.push_back({{arg.substr(2, equals == std::string::npos ? equals : equals - 2)}});
      if (equals != std::string::npos) flags.back().words.push_back(arg.substr(equals + 1));
    } else if (!flags.empty()) {
      flags.back().words.push_back(arg);
    }
  }
  return flags;
}

Status Validate(const Settings& settings) {
  const int64_t stripes = settings.Int(Setting::kStripes);
  if ((stripes & (stripes - 1)) != 0) {
    return Fatal("Checking the configuration", "stripes " + settings.Text(Setting::kStripes),
                 "argument must be a power of two");
  }
  return Status::Ok();
}

std::string AbsolutePath(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) != nullptr ? resolved : path;
}

bool IsOneOf(const std::string& text, std::initializer_list<std::string_view> options) {
  for (const std::string_view option : options) {
    if (text == option) return true;
  }
  return false;
}

}  // namespace

std::optional<std::vector<std::string>> SplitConfigLine(std::string_view line) {
  std::vector<std::string> words;
  size_t i = 0;
  const auto blank = [&](size_t at) {
    return std::isspace(static_cast<unsigned char>(line[at])) != 0;
  };
  for (;;) {
    while (i < line.size() && blank(i)) ++i;
    if (i == line.size()) return words;
    std::string& word = words.emplace_back();
    while (i < line.size() && !blank(i)) {
      const char quote = line[i];
      if (quote != '"' && quote != '\'') {
        word += line[i++];
        continue;
      }
      for (++i;; ++i) {
        if (i >= line.size()) return std::nullopt;
        if (line[i] == quote) break;
        if (line[i] != '\\' || i + 1 >= line.size()) {
          word += line[i];
        } else if (quote == '\'') {
          word += line[i + 1] == '\'' ? line[++i] : '\\';
        } else if (line[i + 1] == 'x' && i + 3 < line.size() && IsHex(line[i + 2]) &&
                   IsHex(line[i + 3])) {
          word += static_cast<char>(HexValue(line[i + 2]) * 16 + HexValue(line[i + 3]));
          i += 3;
        } else {
          const char c = line[++i];
          constexpr std::string_view kNames = "nrtba";
          constexpr std::string_view kBytes = "\n\r\t\b\a";
          const size_t at = kNames.find(c);
          word += at == std::string_view::npos ? c : kBytes[at];
        }
      }
      ++i;
      if (i < line.size() && !blank(i)) return std::nullopt;
    }
  }
}

Result<StartOptions> ParseCommandLine(std::span<const std::string> args) {
  StartOptions options;
  if (!args.empty()) {
    if (IsOneOf(args[0], {"-v", "--version"})) options.action = StartOptions::Action::kShowVersion;
    if (IsOneOf(args[0], {"-h", "--help"})) options.action = StartOptions::Action::kShowHelp;
    if (options.action != StartOptions::Action::kRun) return options;
  }
  Loader loader(&options);
  size_t first = 0;
  if (!args.empty() && !args[0].starts_with("-")) {
    options.config_file = AbsolutePath(args[0]);
    HOTKV_RETURN_IF_ERROR(loader.LoadFile(args[0], 0));
    first = 1;
  }
  std::vector<std::string> rest(args.begin() + static_cast<ptrdiff_t>(first), args.end());
  // "-" may stand first or last; flags win over it as they do over the file.
  const bool first_is_input = !rest.empty() && rest.front() == "-";
  if (first_is_input || (!rest.empty() && rest.back() == "-")) {
    rest.erase(first_is_input ? rest.begin() : rest.end() - 1);
    HOTKV_RETURN_IF_ERROR(loader.LoadFile("-", 0));
  }
  if (!rest.empty() && !rest[0].starts_with("--")) {
    return Status::InvalidArgument("hotkv-server: unexpected argument '" + rest[0] +
                                   "'; see hotkv-server --help");
  }
  for (const Flag& flag : GroupFlags(rest)) {
    HOTKV_RETURN_IF_ERROR(
        loader.Apply(flag.words, "Reading the command line", "--" + Quoted(flag.words)));
  }
  HOTKV_RETURN_IF_ERROR(Validate(options.settings));
  return options;
}

}  // namespace hotkv
