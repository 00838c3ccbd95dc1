import { library } from "@halfstep/build";

export default library({
  entry: ["src/index.ts", "src/file-kind.ts", "src/cli/main.ts"],
  external: [/^node:/],
  usesDisposal: true,
});
