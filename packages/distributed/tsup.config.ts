import { library } from "@halfstep/build";

export default library({ entry: ["src/index.ts", "src/testing.ts"], external: [/^node:/] });
