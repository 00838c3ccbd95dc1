import { type Fields, wordField } from "../site/url-state.js";

/** What the address of the page holds. A visitor's own file has no address. */
export interface FileState {
  /** The file that the page opens by itself. */
  readonly file: "none" | "example";
  /** Which rows the table has: of all tensors, or of those that overflow or become 0. */
  readonly rows: "all" | "lossy";
}

/** How the address writes it. */
export const fileFields: Fields<FileState> = {
  file: wordField("none", ["none", "example"]),
  rows: wordField("all", ["all", "lossy"]),
};
