import { manyPrograms } from "@halfstep/vitest";

// The study of parity takes minutes: a gate runs it (npm run test:parity -w digits).
export default manyPrograms({ exclude: ["test/parity.test.ts"] });
