import { library } from "@halfstep/build";

export default library({
  entry: ["src/index.ts"],
  external: [/^node:/],
  usesDisposal: true,
});
