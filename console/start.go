package console

import "github.com/gin-gonic/gin"

func (c *Console) startRoutes(pages *gin.RouterGroup) {
	pages.GET("", c.signedIn(c.showStart))
}

// startView is the first page, with everything that waits for the person.
type startView struct {
	Name string
}

var startPage = newPage[startView]("start.html")

func (c *Console) showStart(r *request) error {
	return startPage.show(r, startView{Name: r.viewer.Name})
}
