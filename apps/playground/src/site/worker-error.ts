import { sentence } from "./sentence.js";

/** What an `error` event of a worker says. One whose script did not load says nothing itself. */
export const workerErrorText = ({ message }: Partial<ErrorEvent>): string =>
  message
    ? sentence(message)
    : "A script of this page could not be loaded: check the connection, and load the page again.";
