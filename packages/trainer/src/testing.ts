/**
 * The contract of `CheckpointStore`, for authors of stores. It needs no test framework: each case is a name and an async function that
 * throws an error with the difference.
 */
export {
  type CheckpointStoreSubject,
  type ContractCase,
  checkpointStoreContract,
} from "./contract/checkpoint-store.js";
