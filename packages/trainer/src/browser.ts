export { indexedDbCheckpoints } from "./browser/indexed-db-checkpoints.js";
export { opfsCheckpoints } from "./browser/opfs-checkpoints.js";
