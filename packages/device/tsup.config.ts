import { library, variants } from "@halfstep/build";

export default library({
  entry: ["src/index.ts", "src/node.ts", "src/testing.ts"],
  variants: variants.device,
});
