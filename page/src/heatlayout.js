// The layout of the heat map: time runs down each column and on at the top of the next one.

/** Lengths of a column, in milliseconds, that read well: 10 ms to 1 s, 10 s, 1 min, 10 min, 1 h to 1 day. */
const COLUMN_MS = [10, 20, 50, 100, 200, 500, 1e3, 1e4, 6e4, 6e5, 3.6e6, 2.16e7, 8.64e7];
/** The fewest columns of a well-known length. */
const COLUMNS_FEWEST = 6;
/** The most cells of a column. */
export const ROWS_MOST = 60;

/** The number of steps in a column: a well-known length of time where one fits, and not too many columns. */
export function stepsOfColumn(stepMs, count, columnsMost) {
  const fewest = Math.max(1, Math.ceil(count / columnsMost));
  const lengths = COLUMN_MS.map((length) => Math.round(length / stepMs));
  const steps = lengths.find((length) => length >= Math.max(2, fewest)) ?? Infinity;
  // A map of few columns shows nothing: a short time has columns of its own length.
  return count / steps >= COLUMNS_FEWEST ? steps : Math.max(fewest, Math.round(Math.sqrt(count)));
}

/** The number of steps in a cell: the fewest that divide the column's into at most `ROWS_MOST` cells. */
export function stepsOfCell(column) {
  const fewest = Math.ceil(column / ROWS_MOST);
  for (let steps = fewest; steps <= 2 * fewest; steps++) {
    if (column % steps === 0) {
      return steps;
    }
  }
  return fewest;
}

/** Cells are numbered in the order of time. */
export class HeatLayout {
  constructor({ stepMs, count }, columnsMost) {
    this.count = count;
    /** Steps of a column, and of a cell. */
    this.ofColumn = stepsOfColumn(stepMs, count, columnsMost);
    this.ofCell = stepsOfCell(this.ofColumn);
    this.columns = Math.ceil(count / this.ofColumn);
    this.rows = Math.ceil(Math.min(count, this.ofColumn) / this.ofCell);
    /** The number of cells. */
    this.cells = this.cellOf(count - 1) + 1;
  }

  cellOf(step) {
    const column = Math.floor(step / this.ofColumn);
    return column * this.rows + Math.floor((step - column * this.ofColumn) / this.ofCell);
  }

  /** The first step of a cell. */
  stepOf(cell) {
    const column = Math.floor(cell / this.rows);
    return column * this.ofColumn + (cell - column * this.rows) * this.ofCell;
  }

  /** The window of steps from one cell to another, both included, in either order. */
  windowOf(one, other) {
    const last = Math.max(one, other);
    const end = last + 1 < this.cells ? this.stepOf(last + 1) : this.count;
    return [this.stepOf(Math.min(one, other)), end];
  }
}
