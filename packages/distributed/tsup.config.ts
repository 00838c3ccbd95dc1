import { library } from "@halfstep/build";

export default library({
  entry: ["src/index.ts", "src/node.ts", "src/testing.ts"],
  external: [/^node:/, "koffi"],
});
