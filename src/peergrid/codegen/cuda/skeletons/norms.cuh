// Where the sums of norms go: see `common/norm.py`; the tree of sums is that of `codegen.norm`.

constexpr int NORM_ROWS = 24, NORM_COLUMNS = 8, NORM_LEAVES = 256;

struct Norms { R* partial; double* rows; long long pitch, plane, row_plane, follow; };
