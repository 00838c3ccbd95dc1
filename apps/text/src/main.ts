import { program } from "@halfstep/trainer/cli";
import { evaluateCommand } from "./evaluate-command.js";
import { exportCommand } from "./export-command.js";
import { parseOptions } from "./options.js";
import { predictCommand } from "./predict-command.js";
import { trainCommand } from "./train-command.js";

await program(async (args) => {
  const options = parseOptions(args);
  switch (options.command) {
    case "train":
      return await trainCommand(options);
    case "evaluate":
      return await evaluateCommand(options);
    case "predict":
      return await predictCommand(options);
    case "export":
      return await exportCommand(options);
  }
});
