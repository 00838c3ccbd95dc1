import { library, variants } from "@halfstep/build";

export default library({
  entry: ["src/index.ts", "src/dtypes.ts", "src/philox.ts", "src/wgsl.ts", "src/cli/main.ts"],
  external: [/^node:/],
  variants: variants.formats,
});
