// The completion scripts are made from the commands and options themselves, so that they cannot be out of
// date.
#pragma once

namespace CLI {
class App;
}

namespace kin::cmd {

// What `kin completion` describes; must outlive the command's run.
void set_completion_app(CLI::App& app);

}  // namespace kin::cmd
