/** The end of a command that has shown its result, which says that something is wrong: exit code 1. */
export class Unsuccessful extends Error {
  /** @param message one line for people; programs read the result */
  constructor(message: string) {
    super(message);
    this.name = 'Unsuccessful';
  }
}
