import { print, program } from "@halfstep/trainer/cli";
import { mnistDirectory } from "./data.js";
import { exportFolder } from "./export-folder.js";
import { evaluate, exportNetwork, predict } from "./inference.js";
import { parseOptions } from "./options.js";
import { train } from "./training.js";

await program(async (args) => {
  const options = parseOptions(args);
  switch (options.command) {
    case "train":
      return options.evaluate ? await evaluate(options) : await train(options);
    case "predict":
      return await predict(options);
    case "export":
      return await exportNetwork(options);
    case "export-folder": {
      const count = await exportFolder(options.from ?? mnistDirectory(), options.to, options);
      print(`${count} images in ${options.to}`);
      return 0;
    }
  }
});
