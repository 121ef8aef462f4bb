package lists

import (
	"context"

	"millwright/service/store"
)

// EncodeLastPage encodes the rows as the last page of a list.
func EncodeLastPage[Row any, P rowPointer[Row]](ctx context.Context, found []Row) ([]byte, error) {
	return encodePage[Row, P](ctx, nil, nil, &PageStart{}, store.Visibility{}, found, len(found))
}
