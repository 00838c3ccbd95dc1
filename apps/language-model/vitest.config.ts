import { gpu } from "@halfstep/vitest";

export default gpu();
