/** A message with a full stop. It may begin with the name of a file, which stays as it is. */
export const ended = (message: string): string =>
  /[.!?…]$/.test(message) ? message : `${message}.`;

/** An error's message as a sentence of the page: with a capital where it begins with a word, and with a full stop. */
export const sentence = (message: string): string =>
  ended(/^[a-z]+ /.test(message) ? message.charAt(0).toUpperCase() + message.slice(1) : message);
