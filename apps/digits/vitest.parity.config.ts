import { gpu } from "@halfstep/vitest";

export default gpu({ include: ["test/parity.test.ts"] });
