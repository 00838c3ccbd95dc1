import { manyNarrowPrograms } from "@halfstep/vitest";

export default manyNarrowPrograms();
