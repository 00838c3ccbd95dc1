import { program } from "@halfstep/trainer/cli";
import { evaluate } from "./commands/evaluate.js";
import { exportNetwork } from "./commands/export.js";
import { predict } from "./commands/predict.js";
import { train } from "./commands/train.js";
import { parseOptions } from "./options.js";

await program(async (args) => {
  const options = parseOptions(args);
  switch (options.command) {
    case "train":
      return await train(options);
    case "evaluate":
      return await evaluate(options);
    case "predict":
      return await predict(options);
    case "export":
      return await exportNetwork(options);
  }
});
