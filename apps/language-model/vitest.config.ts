import { manyPrograms } from "@halfstep/vitest";

export default manyPrograms();
